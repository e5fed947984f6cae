//! Programs as child processes that end with the test.

use std::{
    os::unix::process::CommandExt,
    process::{Child, ChildStdout, Command, ExitStatus},
};

use rustix::process::{Pid, Signal, kill_process};

/// A running program, which is killed when this value is dropped.
///
/// Signals cannot reach another process: a child keeps its process id until it is waited for, and
/// only `&mut self` waits and signals.
pub struct ChildProcess(Child);

impl ChildProcess {
    pub fn spawn(command: &mut Command) -> Self {
        match command.spawn() {
            Ok(child) => Self(child),
            Err(error) => panic!("{command:?}: {error}"),
        }
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Returns the other end of a standard output that is `Stdio::piped()`.
    pub fn take_stdout(&mut self) -> ChildStdout {
        self.0.stdout.take().unwrap()
    }

    /// Describes whether the program has exited, and with which status or signal, or waits or was
    /// stopped.
    pub fn describe(&mut self) -> String {
        if let Some(status) = self.exit_status() {
            return format!("the process exited with {status}");
        }
        let file = format!("/proc/{}/status", self.id());
        let status = std::fs::read_to_string(file).unwrap_or_default();
        let state = status.lines().find(|line| line.starts_with("State:"));
        format!("the process is running, {}", state.unwrap_or_default())
    }

    /// Returns the exit status if the program has exited.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().unwrap()
    }

    /// Sends a signal unless the program has exited.
    pub fn signal(&mut self, signal: Signal) {
        if self.exit_status().is_none() {
            kill_process(Pid::from_child(&self.0), signal).unwrap();
        }
    }

    pub fn wait(&mut self) -> ExitStatus {
        self.0.wait().unwrap()
    }

    /// Sends SIGKILL and waits for the exit.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.wait();
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A command that runs as an unprivileged user if the tests run as root.
///
/// The child is the program itself. With `runuser`, it would be the parent of the program, and the
/// program would survive SIGKILL.
pub fn unprivileged_command(user: &str, program: &str) -> Command {
    let mut command = Command::new(program);
    if let Some((user_id, group_id)) = unprivileged_ids(user) {
        command.uid(user_id).gid(group_id);
    }
    command
}

/// Returns the user and group id of an unprivileged user if the tests run as root.
pub fn unprivileged_ids(user: &str) -> Option<(u32, u32)> {
    if !rustix::process::getuid().is_root() {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let fields = users.lines().map(|line| line.split(':'));
    let mut fields = fields
        .filter(|fields| fields.clone().next() == Some(user))
        .flat_map(|fields| fields.skip(2))
        .map(|id| id.parse().unwrap());
    Some((fields.next().unwrap(), fields.next().unwrap()))
}
