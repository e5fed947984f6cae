//! `perennial dev`: a sandbox in one command.
//!
//! It finds a PostgreSQL or starts a private one, migrates, makes a client, and serves. Everything that it keeps is in one
//! folder; whatever else it does, it does by running this very binary with the variables that it then prints.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{IsTerminal, stdout},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use clap::Args;
use serde_json::{Value, json};

mod folder;
mod ports;
mod postgres;

use super::so_many;
use folder::Folder;
pub use ports::answers_ready;
use postgres::Postgres;
pub use postgres::program_path;

/// How long the service may take to be ready.
const PATIENCE: Duration = Duration::from_mins(1);

/// Run a sandbox.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perennial dev                             in the foreground, until Ctrl-C
  eval \"$(perennial dev --background)\"      goes on; sets URL and CLIENT_ID
  perennial dev --stop

Uses DATABASE_URL if that is set; else starts a private PostgreSQL from this
machine's own binaries.")]
pub struct Dev {
    /// Go on in the background, and print what the shell should export
    #[arg(long, conflicts_with = "stop")]
    background: bool,
    /// End what runs in the background; the data stays
    #[arg(long)]
    stop: bool,
    /// Where everything is kept [default: ~/.local/state/perennial/dev; for root
    /// /var/lib/perennial-dev]
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// Print one JSON object instead of lines for the shell
    #[arg(long, requires = "background")]
    json: bool,
}

impl Dev {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let folder = Folder::open(self.data)?;
        if self.stop {
            return stop(&folder);
        }
        let begun = Instant::now();
        if let Some(running) = folder.running()? {
            if !self.background {
                bail!(
                    "a sandbox runs already, at {} (perennial dev --stop ends it)",
                    running.url()
                );
            }
            eprintln!("  runs already: {}", running.url());
            running.print(self.json);
            return Ok(());
        }
        let postgres = postgres_of(&folder)?;
        let mut sandbox = Sandbox::prepare(&folder, &postgres)?;
        if self.background {
            sandbox.serve_in_background(&folder, begun)?;
            sandbox.print(self.json);
            return Ok(());
        }
        let stop = super::stop_signal()?;
        let mut child = sandbox.serve(&folder, None)?;
        if let Err(error) = sandbox.wait_until_ready(&mut child) {
            folder.end_running()?;
            if let Postgres::Private(private) = postgres {
                private.stop()?;
            }
            return Err(error);
        }
        sandbox.banner(begun, false);
        let ended = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(100)) => {}
                // A terminal has told the child too.
                () = stop.cancelled() => {
                    folder::tell_to_end(child.id());
                    break child.wait()?;
                }
            }
        };
        folder.forget_running()?;
        if let Postgres::Private(private) = postgres {
            private.stop()?;
        }
        if ended.success() {
            Ok(())
        } else {
            bail!("the service ended with {ended}")
        }
    }
}

/// The database that is given, or a private one.
fn postgres_of(folder: &Folder) -> anyhow::Result<Postgres> {
    let given = std::env::var("DATABASE_URL").ok();
    let own = postgres::Private::known(folder);
    match (given, own) {
        // What an earlier `eval` has exported is the private one again.
        (Some(given), Some(own)) if given == own.url() => own.start(),
        (Some(given), _) if !given.is_empty() => Ok(Postgres::Given(given)),
        (_, Some(own)) => own.start(),
        (_, None) => postgres::Private::make(folder)?.start(),
    }
}

fn stop(folder: &Folder) -> anyhow::Result<()> {
    let ended = folder.end_running()?;
    let private = postgres::Private::known(folder);
    let stopped = match private {
        Some(private) => private.stop()?,
        None => false,
    };
    eprintln!(
        "{}; the data stays in {}",
        match (ended, stopped) {
            (true, true) => "stopped the sandbox and its PostgreSQL",
            (true, false) => "stopped the sandbox",
            (false, true) => "stopped its PostgreSQL; no sandbox was running",
            (false, false) => "nothing was running",
        },
        folder.path().display()
    );
    Ok(())
}

/// A sandbox: the variables that it is run with.
pub(super) struct Sandbox {
    variables: BTreeMap<String, String>,
    applied: usize,
}

impl Sandbox {
    /// One that is described by what it has written down.
    fn known(variables: BTreeMap<String, String>) -> Self {
        Self {
            variables,
            applied: 0,
        }
    }

    /// Chooses ports, migrates, and makes a client unless there is one.
    fn prepare(folder: &Folder, postgres: &Postgres) -> anyhow::Result<Self> {
        let listen = ports::listen("PERENNIAL_LISTEN", 8080)?;
        let admin = ports::listen("PERENNIAL_ADMIN_LISTEN", 9090)?;
        let variables = [
            ("DATABASE_URL", postgres.url()),
            ("PERENNIAL_MODE", "sandbox".to_owned()),
            ("PERENNIAL_STATE_DIR", folder.path().display().to_string()),
            ("PERENNIAL_LISTEN", listen.clone()),
            ("PERENNIAL_ADMIN_LISTEN", admin),
            ("URL", format!("http://{listen}")),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value));
        let mut sandbox = Self::known(variables.into());
        let applied = sandbox.ask(&["migrate", "--json"])?;
        let applied = applied.get("applied").and_then(Value::as_array);
        sandbox.applied = applied.map_or(0, Vec::len);
        let client = if let Some(known) = folder.client(&postgres.url())? {
            known
        } else {
            let made = sandbox.ask(&["client", "create", "--name", "perennial dev", "--json"])?;
            let value = made.get("client_id").and_then(Value::as_str);
            let value = value.context("the client has no id")?;
            folder.keep_client(&postgres.url(), value)?;
            value.to_owned()
        };
        sandbox.variables.insert("CLIENT_ID".to_owned(), client);
        Ok(sandbox)
    }

    fn url(&self) -> &str {
        self.variables.get("URL").map_or("", String::as_str)
    }

    /// This binary, with the sandbox's variables.
    fn command(&self, arguments: &[&str]) -> anyhow::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        let ours = |(name, _): &(&String, &String)| !["URL", "CLIENT_ID"].contains(&name.as_str());
        command
            .args(arguments)
            .envs(self.variables.iter().filter(ours));
        Ok(command)
    }

    /// Runs a command; answers the JSON that it printed.
    fn ask(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        let output = self.command(arguments)?.output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("{}", said.trim().trim_start_matches("perennial: "));
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Starts the service, and writes down that it runs.
    fn serve(&self, folder: &Folder, log: Option<File>) -> anyhow::Result<Child> {
        let mut command = self.command(&["serve"])?;
        command.stdin(Stdio::null());
        if let Some(log) = log {
            // A group of its own, so that the terminal's end is not its end.
            command
                .stdout(log.try_clone()?)
                .stderr(log)
                .process_group(0);
        }
        if std::env::var_os("PERENNIAL_LOG_FORMAT").is_none() {
            command.env("PERENNIAL_LOG_FORMAT", "text");
        }
        let child = command.spawn().context("the service cannot be started")?;
        folder.note_running(child.id(), &self.variables)?;
        Ok(child)
    }

    fn serve_in_background(&mut self, folder: &Folder, begun: Instant) -> anyhow::Result<()> {
        let path = folder.path().join("log");
        let log = File::options().create(true).append(true).open(&path)?;
        let mut child = self.serve(folder, Some(log))?;
        if let Err(error) = self.wait_until_ready(&mut child) {
            folder.end_running()?;
            let said = fs::read_to_string(&path).unwrap_or_default();
            let last: Vec<&str> = said.lines().rev().take(5).collect();
            let last: Vec<&str> = last.into_iter().rev().collect();
            return Err(error.context(format!("its log ends with:\n{}", last.join("\n"))));
        }
        self.banner(begun, true);
        Ok(())
    }

    fn wait_until_ready(&self, child: &mut Child) -> anyhow::Result<()> {
        let admin = self.variables.get("PERENNIAL_ADMIN_LISTEN");
        let admin = admin.context("an address")?;
        let begun = Instant::now();
        while !ports::answers_ready(admin) {
            if let Some(status) = child.try_wait()? {
                bail!("the service ended with {status}");
            }
            if begun.elapsed() > PATIENCE {
                bail!("the service is not ready after {} s", PATIENCE.as_secs());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// What somebody at a terminal wants to know.
    fn banner(&self, begun: Instant, background: bool) {
        let applied = match self.applied {
            0 => String::new(),
            count => format!(" · {}", so_many(count, "migration")),
        };
        let url = self.url();
        eprintln!(
            "  Perennial {} · SANDBOX · telemetry: none · ready in {:.1} s{applied}",
            env!("CARGO_PKG_VERSION"),
            begun.elapsed().as_secs_f64()
        );
        let client = self.variables.get("CLIENT_ID").map_or("", String::as_str);
        eprintln!("    API     {url}");
        eprintln!("    Docs    {url}/docs/contents");
        eprintln!("    Client  {client}");
        if background {
            eprintln!("    Next    perennial seed --demo");
        } else {
            eprintln!("    Next    in another terminal: eval \"$(perennial dev --background)\"");
        }
    }

    /// What the shell should know.
    fn print(&self, as_json: bool) {
        if as_json {
            println!("{}", json!(self.variables));
            return;
        }
        for (name, value) in &self.variables {
            println!("export {name}='{}'", value.replace('\'', r"'\''"));
        }
        if stdout().is_terminal() {
            eprintln!(
                "    These were printed and not set; eval \"$(…)\" around the command sets them."
            );
        }
    }
}
