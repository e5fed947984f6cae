//! Runs the commands of docs/how-to/go-to-production.md, in live mode on a new PostgreSQL cluster.
//!
//! Replaces paths, addresses and database URLs. The commands of `sh` blocks need systemd and are not run;
//! the test starts the service itself.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    time::Duration,
};

use crate::{
    architecture::crate_path,
    harness::{
        cluster::Cluster,
        process::{Process, Variables, http_get},
        reserve_port, unique_name, wait_until,
    },
};

/// A fenced block of the guide: its language and its text.
type Block = (String, String);

fn blocks() -> Vec<Block> {
    let guide = crate_path("../../docs/how-to/go-to-production.md");
    let text = fs::read_to_string(guide).unwrap();
    let mut fences = text.split("```");
    let mut blocks = Vec::new();
    fences.next();
    while let (Some(block), _) = (fences.next(), fences.next()) {
        let (language, text) = block.split_once('\n').unwrap();
        blocks.push((language.to_owned(), text.to_owned()));
    }
    blocks
}

/// Splits a console block into commands, each with the lines of output that it shows.
fn commands(block: &str) -> Vec<(String, Vec<String>)> {
    let mut commands: Vec<(String, Vec<String>)> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command.to_owned(), Vec::new())),
            (None, Some((_, output))) => output.push(line.to_owned()),
            (None, None) => panic!("output before the first command: {line}"),
        }
    }
    commands
}

/// Returns whether a line of output matches the guide, in which `…` stands for any text.
fn matches(line: &str, shown: &str) -> bool {
    let mut rest = line;
    for (index, part) in shown.split('…').enumerate() {
        match rest.find(part) {
            Some(0) => rest = &rest[part.len()..],
            Some(at) if index > 0 => rest = &rest[at + part.len()..],
            _ => return false,
        }
    }
    true
}

/// A bash process that runs one command after the other.
struct Shell {
    child: Child,
    input: ChildStdin,
    output: BufReader<std::process::ChildStdout>,
}

impl Shell {
    fn start(variables: &BTreeMap<&str, String>) -> Self {
        let mut child = Command::new("bash")
            .env_clear()
            .envs(variables)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut shell = Self {
            child,
            input,
            output: BufReader::new(output),
        };
        shell.run("exec 2>&1");
        shell
    }

    /// Runs a command that must succeed, and returns what it printed.
    fn run(&mut self, command: &str) -> String {
        let (code, output) = self.try_run(command);
        assert_eq!(code, "0", "{command}: {output}");
        output
    }

    /// Runs a command, and returns its exit code and what it printed.
    fn try_run(&mut self, command: &str) -> (String, String) {
        writeln!(self.input, "{command}\ncode=$?; echo; echo __ended__ $code").unwrap();
        let mut output = String::new();
        loop {
            let mut line = String::new();
            let length = self.output.read_line(&mut line).unwrap();
            assert!(length > 0, "bash exited after {command}: {output}");
            if let Some(code) = line.strip_prefix("__ended__ ") {
                return (code.trim().to_owned(), output);
            }
            output += &line;
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The replacements that fit the guide to the test's machine.
struct Installation {
    folder: PathBuf,
    cluster: Cluster,
    api_port: u16,
    admin_port: u16,
    /// What commands printed and later ones need: `prn_sk_…` and `sub_…`.
    printed: BTreeMap<&'static str, String>,
}

impl Installation {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(unique_name("perennial-guide-"));
        fs::create_dir(&folder).unwrap();
        Self {
            folder,
            cluster: Cluster::start(),
            api_port: reserve_port(),
            admin_port: reserve_port(),
            printed: BTreeMap::new(),
        }
    }

    fn fit(&self, text: &str) -> String {
        let folder = self.folder.to_str().unwrap();
        let mut text = text
            .replace("/etc/perennial", &format!("{folder}/etc"))
            .replace("/var/backups/perennial", &format!("{folder}/backups"))
            .replace(
                "db.example.com:5432",
                &format!("127.0.0.1:{}", self.cluster.port),
            )
            .replace("?sslmode=verify-full", "")
            .replace("127.0.0.1:8080", &format!("127.0.0.1:{}", self.api_port))
            .replace("127.0.0.1:9090", &format!("127.0.0.1:{}", self.admin_port));
        for (prefix, value) in &self.printed {
            text = text.replace(&format!("{prefix}…"), value);
        }
        // The proxy's URL; the public URL stays.
        let url = format!("export URL=http://127.0.0.1:{}", self.api_port);
        text.replace("export URL=https://billing.example.com", &url)
    }

    fn keep_printed(&mut self, output: &str) {
        for prefix in ["prn_sk_", "sub_"] {
            if let Some(at) = output.find(prefix) {
                let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                let value = output[at..].chars().take_while(|c| is_part(*c)).collect();
                self.printed.entry(prefix).or_insert(value);
            }
        }
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Starts `perennial serve` with the settings of the guide, as the unit does.
async fn start_service(installation: &Installation) -> Process {
    let environment = fs::read_to_string(installation.folder.join("etc/environment")).unwrap();
    let mut variables = Variables::new();
    for line in environment.lines() {
        let (name, value) = line.split_once('=').unwrap();
        let name: &'static str = name.to_owned().leak();
        variables.insert(name, value.trim_matches('\'').to_owned());
    }
    let key = installation.folder.join("etc/master-key");
    variables.insert(
        "PERENNIAL_MASTER_KEY_FILE",
        key.to_str().unwrap().to_owned(),
    );
    let process = Process::spawn(&variables, &["serve"]);
    let admin = format!("http://127.0.0.1:{}", installation.admin_port);
    wait_until(
        "the service is ready",
        Duration::from_secs(30),
        async || {
            http_get(&admin, "/readyz")
                .await
                .is_ok_and(|(status, _)| status == 200)
        },
    )
    .await;
    process
}

/// Runs `perennial doctor`. Its only finding is the example's identity provider, which does not exist.
fn run_doctor(shell: &mut Shell) -> String {
    let (code, output) = shell.try_run("perennial doctor");
    assert_eq!(code, "1", "{output}");
    let problems: Vec<&str> = output.lines().filter(|line| line.contains('✘')).collect();
    let is_provider = |line: &&str| line.contains("✘ provider https://accounts.example.com");
    assert!(
        problems.len() == 1 && problems.iter().all(is_provider),
        "{output}"
    );
    output
}

#[tokio::test]
async fn commands_of_the_production_guide_succeed() {
    let mut installation = Installation::new();
    let binary = Path::new(env!("CARGO_BIN_EXE_perennial")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let home = installation.folder.to_str().unwrap().to_owned();
    let mut shell = Shell::start(&BTreeMap::from([("PATH", path), ("HOME", home)]));
    let admin_url = installation.cluster.url();
    let (mut service, mut run) = (None, 0);
    for (language, text) in blocks() {
        match language.as_str() {
            "sql" => {
                for statement in text.lines() {
                    shell.run(&format!("psql '{admin_url}' -c \"{statement}\""));
                }
            }
            "ini" => {
                let path = installation.folder.join("etc/environment");
                fs::write(path, installation.fit(&text)).unwrap();
            }
            "sh" => service = Some(start_service(&installation).await),
            "console" => {
                for (command, shown) in commands(&text) {
                    let command = installation.fit(&command);
                    assert!(!command.contains('…'), "{command}");
                    let output = match command.as_str() {
                        "perennial doctor" => run_doctor(&mut shell),
                        _ => shell.run(&command),
                    };
                    for shown in shown {
                        let is_printed = output.lines().any(|line| matches(line, &shown));
                        assert!(is_printed, "{command}: {shown} is not in:\n{output}");
                    }
                    installation.keep_printed(&output);
                    run += 1;
                }
            }
            other => panic!("unexpected block: {other}"),
        }
    }
    assert!(service.is_some() && run >= 25, "{run} commands");
}
