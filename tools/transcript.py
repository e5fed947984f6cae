"""Types the commands of a documentation page into a shell, and checks their output."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

# The expected output of each command in docs/tutorial/quickstart.md.
QUICKSTART = [
    r"ready in .* s · \d+ migrations?",
    r"3 plans \(free, pro, team\) · 240 subscribers",
    r"",
    r'"refresh_token"',
    r"sub_[0-9a-f]{32}  Pending since(?s:.)*curl \$URL/subscriptions",
    r'"status":"completed"',
    r"renewed · .*past_due(?s:.)*ada@example.com: past_due \(the period from",
    r"✔ PostgreSQL(?s:.)*✔ worker",
]
MAX_COMMANDS = 8
# Seconds. Ends a shell whose command does not end.
COMMAND_TIMEOUT = 180
# Ends the recorded output of a shell.
EXITED = "\0"


def read_commands(page, heading=None):
    """Returns the commands of a page, or of the section with this heading, each as one line."""
    text = page.read_text()
    if heading:
        text = re.split(r"^## ", text.split(f"\n## {heading}\n")[1], flags=re.MULTILINE)[0]
    commands = []
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for command in re.split(r"^\$ ", block.replace("\\\n", ""), flags=re.MULTILINE)[1:]:
            commands.append(re.sub(r"\s+", " ", command.strip()))
    return commands


# A background job of a shell ignores SIGINT, and so would the commands that it starts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Shell:
    """An interactive shell. A thread reads its output, so a command can run while another shell is used."""

    def __init__(self, command=("bash",), timeout=COMMAND_TIMEOUT, **options):
        self.timeout = timeout
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options,
        )
        self.output = ""
        self.has_output = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            with self.has_output:
                self.output += line
                self.has_output.notify_all()
        with self.has_output:
            self.output += EXITED
            self.has_output.notify_all()

    def start(self, command):
        """Types a command. Returns the position of its output."""
        position = len(self.output)
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        return position

    def wait_for(self, pattern, position):
        """Waits until the output after a position contains a pattern. Returns the match."""

        def find():
            return re.search(pattern, self.output[position:]) or EXITED in self.output

        with self.has_output:
            found = self.has_output.wait_for(find, self.timeout)
        if not isinstance(found, re.Match):
            self.interrupt()
            self.process.kill()
            sys.exit(f"the shell exited, or did not print {pattern!r} in {self.timeout} s: {self.output[position:]}")
        return found

    def type(self, command):
        """Types a command, and returns its exit code and output."""
        position = self.start(f"{command}\ncode=$?; echo; echo __ended__ $code")
        ended = self.wait_for(r"(?m)^__ended__ (\d+)\n", position)
        return int(ended.group(1)), self.output[position : position + ended.start()].rstrip("\n")

    def interrupt(self):
        """Interrupts the running command, as Ctrl-C does."""
        if self.process.poll() is not None:
            return
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        for child in map(int, children.split()):
            os.kill(child, signal.SIGINT)

    def close(self):
        self.process.stdin.close()
        self.process.wait(self.timeout)


def prepare_home(binary, name):
    """Creates a home with the binary in its path. Returns it, and the environment of a shell with this home and state folder."""
    # The user postgres must be able to enter it.
    home = Path(tempfile.mkdtemp(prefix=f"perennial-{name}-", dir="/var/tmp"))
    home.chmod(0o755)
    (home / "bin").mkdir()
    shutil.copy(binary, home / "bin/perennial")
    path = f"{home}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    return home, {"HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "PATH": path, "LANG": "C.UTF-8"}


def type_commands(shell, commands, expected, fit=lambda command: command, react=lambda command, output: None, max_commands=MAX_COMMANDS):
    """Types each command and checks its output. Replaces `sub_…` by the first id that was printed. Returns the id and the seconds.

    `fit` changes a command for the test's machine; the document's version is printed. `react` does what the reader does outside of
    the shell after a command, given its output.
    """
    if len(commands) != len(expected) or len(commands) > max_commands:
        sys.exit(f"the document has {len(commands)} commands; expected {len(expected)}, at most {max_commands}")
    started_at = time.monotonic()
    subscription = ""
    for command, pattern in zip(commands, expected):
        command = command.replace("sub_…", subscription)
        print(f"$ {command}", flush=True)
        code, output = shell.type(fit(command))
        print(re.sub(r"^", "  ", output, flags=re.MULTILINE) if len(output) < 3000 else f"  {output[:300]} …", flush=True)
        if code != 0 or not re.search(pattern, output):
            sys.exit(f"\nfailed: exit code {code}; expected {pattern!r}")
        if found := re.search(r"sub_[0-9a-f]{32}", output):
            subscription = subscription or found.group(0)
        react(command, output)
    return subscription, time.monotonic() - started_at
