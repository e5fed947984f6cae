"""Runs the code of the guides for app developers against a new sandbox, as a reader would.

The pages are in docs/how-to; GUIDES lists them. Blocks are run in their order:

- `console`: the commands are typed into the terminal that the paragraph before names, by default the first one. Each must succeed.
  The output that the page shows must be printed; `…` stands for any text. A server keeps running while the guide continues.
- `js`, `html`: the block is saved as the file that the paragraph before names.
- `text`: what the named terminal has printed since the last commands in the first one.
- A paragraph that opens or reloads a page is done in Chromium by guides.mjs.

A block of another language fails. At the end, every function of every file must have been called: Node.js and Chromium record
the coverage. `npm install` installs from the lock file of this folder, and the packed SDK.
"""

import json
import re
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import sdk_package
from harness import E2E, ROOT, USER, USER_OPTIONS, Failed, browse, free_ports, fresh_database, new_folder, run
from transcript import Shell, prepare_home

# Each guide, and the guide whose files it continues.
GUIDES = {
    "handle-webhooks": None,
    "add-subscriptions-to-an-app": None,
    "gate-a-feature": "add-subscriptions-to-an-app",
    "test-a-year-of-billing": None,
}
COMMAND_TIMEOUT = 60
MAX_RUNNING = 2
# In the guides. The test uses other ports.
ADDRESS = "127.0.0.1:3000"
TERMINALS = {"first": 0, "second": 1, "third": 2}


@dataclass
class Block:
    """A fenced block of a page, or the reader's action in a browser."""

    language: str
    text: str
    # The paragraph before the block.
    lead: str
    terminal: int = 0
    commands: list = field(default_factory=list)


def read_blocks(text):
    """Returns the blocks of a page, and the actions between them, in their order."""
    blocks = []
    for part in re.split(r"^(```.*?^```)$", text, flags=re.DOTALL | re.MULTILINE):
        if fence := re.match(r"```(\w*)\n(.*)```", part, re.DOTALL):
            named = re.findall(r"\b(first|second|third) (?:terminal|one)\b", lead)
            block = Block(*fence.groups(), lead, TERMINALS[named[-1]] if named else 0)
            if block.language == "console":
                block.commands = read_console(block.text)
            blocks.append(block)
            continue
        paragraphs = re.split(r"\n\n+", part.strip())
        lead = paragraphs[-1]
        actions = [text for text in paragraphs if re.match(r"Open `http|Reload the page", text)]
        blocks.extend(Block("browser", action, action) for action in actions)
    return blocks


def read_console(text):
    """Returns the commands of a block, each with the output that the page shows."""
    commands = []
    for entry in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = entry.replace("\\\n", "").partition("\n")
        commands.append((re.sub(r"\s+", " ", command), output.rstrip("\n")))
    return commands


def file_name(block):
    """Returns the file that a block is saved as."""
    if names := re.findall(r"`([\w./-]+\.(?:mjs|js|html))`", block.lead):
        return names[-1]
    raise Failed(f"the paragraph before a block of {block.language} names no file: {block.lead!r}")


def output_pattern(shown):
    """Returns a regular expression for output that a page shows."""
    parts = [re.escape(part) for part in shown.split("…")]
    start, end = ("" if shown.startswith("…") else "^"), ("" if shown.endswith("…") else "$")
    # A line with only `…` stands for any number of lines.
    return f"(?ms){start}{'.*?'.join(parts)}{end}".replace("\\\n.*?\\\n", "\\\n(?:.*?\\\n)?")


class Guide:
    """A guide that is being run: its terminals, its files and what was called."""

    def __init__(self, name, options, database, project):
        self.name, self.options, self.project = name, options, project
        self.home, environment = prepare_home(options.binary, name)
        self.coverage = self.home / "coverage"
        self.folder = self.home
        self.browser_steps = 0
        listen, admin, port = free_ports(3)
        self.address = f"127.0.0.1:{port}"
        self.environment = {
            **environment,
            "DATABASE_URL": database,
            "PERENNIAL_LISTEN": f"127.0.0.1:{listen}",
            "PERENNIAL_ADMIN_LISTEN": f"127.0.0.1:{admin}",
            "PORT": str(port),
            "NODE_V8_COVERAGE": str(self.coverage),
            # A server that is stopped writes its coverage.
            "NODE_OPTIONS": f"--import={E2E / 'exit_on_signal.mjs'}",
        }
        self.coverage.mkdir()
        for path in (self.home, self.coverage):
            if USER:
                shutil.chown(path, USER, "nogroup")
        # Each file of the guide. Its functions are checked at the end.
        self.files = []
        self.shells = {}
        self.transcript = ""

    def shell(self, terminal):
        if terminal not in self.shells:
            self.shells[terminal] = Shell(timeout=COMMAND_TIMEOUT, env=self.environment, cwd=self.home, **USER_OPTIONS)
        return self.shells[terminal]

    def fit(self, text):
        return text.replace(ADDRESS, self.address)

    def write(self, text):
        """Adds to the transcript, which is printed if the guide fails."""
        self.transcript += f"{text}\n"

    def run(self, block):
        if "Ctrl-C" in block.lead:
            stopped = re.search(r"In the (\w+) terminal, stop the server with Ctrl-C", block.lead).group(1)
            self.shell(TERMINALS[stopped]).interrupt()
        match block.language:
            case "console":
                if block.terminal == 0:
                    self.position = len(self.shells[1].output) if 1 in self.shells else 0
                for command, shown in block.commands:
                    self.run_command(block.terminal, command, shown)
            case "js" | "html":
                self.save(file_name(block), block.text)
            case "text":
                shell = self.shell(block.terminal)
                shell.wait_for(output_pattern(self.fit(block.text.rstrip("\n"))), self.position)
            case "browser":
                self.browse()
            case language:
                raise Failed(f"a block of {language or 'no language'} is not run")

    def run_command(self, terminal, command, shown):
        self.write(f"{terminal + 1}$ {command}")
        shell = self.shell(terminal)
        typed = self.fit(self.install_command(command))
        if terminal > 0 and shown:
            position = shell.start(typed)
            shell.wait_for(output_pattern(self.fit(shown)), position)
            return
        code, output = shell.type(typed)
        self.write(re.sub(r"^", "    ", output[:1500], flags=re.MULTILINE))
        if code != 0 or (shown and not re.search(output_pattern(self.fit(shown)), output)):
            raise Failed(f"exit code {code}; expected: {shown}")
        self.folder = Path(shell.type("pwd")[1]) if terminal == 0 else self.folder

    def install_command(self, command):
        """Returns a command that installs the packages of the lock file, instead of one that installs the newest."""
        if not (names := re.match(r"npm install (.*)…/perennial-client-(\S+)\.tgz$", command)):
            return command
        packages = json.loads((E2E / "package.json").read_text())["devDependencies"]
        version = json.loads((sdk_package.SDK / "package.json").read_text())["version"]
        if missing := [name for name in names.group(1).split() if name not in packages]:
            raise Failed(f"e2e/package.json has no {', '.join(missing)}")
        if names.group(2) != version:
            raise Failed(f"the version of the SDK is {version}")
        copy = f"cp -a {self.project}/package.json {self.project}/node_modules ."
        # Links, because an installed package finds its own packages beside it.
        links = [str((E2E / "node_modules" / name).resolve()) for name in names.group(1).split()]
        return f"{copy} && ln -s {' '.join(links)} node_modules" if links else copy

    def save(self, name, text):
        path = self.folder / name
        self.write(f"(save {name})")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        self.files = [file for file in self.files if file != path] + [path]

    def browse(self):
        """Does what a reader does in a browser."""
        step, self.browser_steps = self.browser_steps, self.browser_steps + 1
        _, token = self.shell(0).type("perennial sandbox token ada@example.com")
        self.write(f"(browser, step {step + 1})")
        browse(
            "guides.mjs", self.options, name=f"{self.name}, step {step + 1} in the browser", pictures=None, guide=self.name, step=step,
            origin=f"http://{self.address}", token=token, folder=self.folder / "public", coverage=self.coverage,
            state=self.home / "browser.json",
        )

    def check_types(self):
        """Checks the files of the server with the types of the SDK."""
        files = [file for file in self.files if file.suffix == ".mjs"]
        for folder in {file.parent for file in files}:
            (folder / "tsconfig.json").write_text(json.dumps({
                "compilerOptions": {
                    "allowJs": True, "checkJs": True, "noEmit": True, "skipLibCheck": True, "strict": False,
                    "module": "nodenext", "moduleDetection": "force", "target": "es2023", "lib": ["es2023", "dom", "dom.iterable"],
                    "typeRoots": [str(sdk_package.SDK / "node_modules/@types")], "types": ["node"],
                },
                "files": [file.name for file in files if file.parent == folder],
            }))
            run(sdk_package.BIN / "tsc", "-p", folder)

    def check_coverage(self):
        """Fails if a file was not loaded, or if one of its functions was not called."""
        called = {}
        for path in self.coverage.glob("*.json"):
            for script in json.loads(path.read_text())["result"]:
                functions = called.setdefault(script["url"], {})
                for function in script["functions"]:
                    whole = function["ranges"][0]
                    key = (whole["startOffset"], whole["endOffset"])
                    functions[key] = functions.get(key, 0) + whole["count"]
        for file in self.files:
            if (functions := called.get(file.as_uri())) is None:
                raise Failed(f"{file.name} was not run")
            for (start, end), count in functions.items():
                if count == 0:
                    raise Failed(f"{file.name}: was not called: {file.read_text()[start:end]}")

    def close(self):
        for shell in self.shells.values():
            shell.interrupt()
            shell.close()
        self.shells.clear()
        stop = [self.home / "bin/perennial", "dev", "--stop"]
        subprocess.run(stop, env=self.environment, cwd=self.home, capture_output=True, check=False, **USER_OPTIONS)


def run_guide(name, options, project):
    """Runs a guide. Returns the line to print about it."""
    started = time.monotonic()
    blocks = read_blocks((ROOT / f"docs/how-to/{name}.md").read_text())
    with fresh_database("guides") as database:
        guide = Guide(name, options, database, project)
        try:
            if earlier := GUIDES[name]:
                # The start of the guide that this one continues: the sandbox, and its files.
                for block in read_blocks((ROOT / f"docs/how-to/{earlier}.md").read_text()):
                    if block.language in ("js", "html") or (block.language == "console" and block.terminal == 0 and not guide.files):
                        guide.run(block)
                guide.files.clear()
            for block in blocks:
                guide.run(block)
            guide.check_types()
            guide.close()
            guide.check_coverage()
        except (Exception, SystemExit) as error:
            raise Failed(f"{guide.transcript}\n{name}: {error}") from error
        finally:
            guide.close()
            shutil.rmtree(guide.home, ignore_errors=True)
    return f"  {name}: {len(blocks)} blocks, {time.monotonic() - started:.1f} s"


def run_guides(options):
    """Runs guides, MAX_RUNNING at a time, because they mostly wait."""
    self_test()
    with new_folder("guides") as project, ThreadPoolExecutor(MAX_RUNNING) as pool:
        (project / "package.json").write_text('{"name": "guide", "private": true, "type": "module"}')
        sdk_package.install_sdk(project)
        running = [pool.submit(run_guide, name, options, project) for name in GUIDES if options.only in name]
        for guide in running:
            print(guide.result(), flush=True)


def failure(checked, *arguments):
    """Returns the message with which a check fails; empty if it passes."""
    try:
        checked(*arguments)
    except Failed as error:
        return str(error)
    return ""


def self_test():
    """Checks how pages are read, and that code without a rule, or that is not called, fails."""
    page = "In a second terminal:\n\n```console\n$ a \\\n    b\nx … y\n$ c\n```\n\nSave this as `d.mjs`:\n\n```js\n1;\n```\n\n"
    page += "Open `http://x`: y.\n\n```python\n```\n"
    console, file, browser, other = read_blocks(page)
    assert console.terminal == 1 and console.commands == [("a b", "x … y"), ("c", "")], console
    assert file_name(file) == "d.mjs" and browser.language == "browser", (file, browser)
    for shown, output, is_match in [
        ("x … y", "1\nx z y\n2", True), ("x … y", "wx z y", False),
        ("x\n…\ny", "x\ny", True), ("x\n…\ny", "x\n1\n2\ny", True), ("x\n…\ny", "x\n1", False),
    ]:
        assert bool(re.search(output_pattern(shown), output)) == is_match, (shown, output)
    guide = Guide.__new__(Guide)
    assert "a block of python is not run" in failure(guide.run, other)
    with new_folder("test") as folder:
        guide.coverage = folder
        guide.files = [folder / "a.mjs"]
        guide.files[0].write_text("const a = () => 1;")
        assert "a.mjs was not run" in failure(guide.check_coverage)
        for count in (0, 1):
            functions = [{"ranges": [{"startOffset": 10, "endOffset": 17, "count": count}]}]
            result = [{"url": guide.files[0].as_uri(), "functions": functions}]
            (guide.coverage / f"{count}.json").write_text(json.dumps({"result": result}))
            assert ("was not called: () => 1" in failure(guide.check_coverage)) == (count == 0)
    for name in GUIDES:
        for block in read_blocks((ROOT / f"docs/how-to/{name}.md").read_text()):
            assert block.language in ("console", "js", "html", "text", "browser"), (name, block)
