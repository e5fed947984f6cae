//! `perennial dev`: a local sandbox in one command.
//!
//! Uses the PostgreSQL in `DATABASE_URL` or starts a private one, migrates, creates two clients and
//! serves the API. Its files are in one state directory. It migrates, creates the clients and serves
//! by running subcommands of this binary, with the environment variables that it prints.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{IsTerminal, stdout},
    net::SocketAddr,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use clap::Args;
use serde_json::{Value, json};

mod clients;
mod ports;
mod postgres;
mod state_dir;

use super::{pluralize, terminal::eprint_wrapped};
pub use ports::is_ready;
use postgres::Postgres;
pub use postgres::program_path;
pub use state_dir::StateDir;

const READY_TIMEOUT: Duration = Duration::from_mins(1);

/// The variables for the user's shell. All others are settings of the service.
const SHELL_VARIABLES: [&str; 3] = ["URL", "CLIENT_ID", "PUBLISHABLE_ID"];

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perennial dev                             in the foreground, until Ctrl-C
  eval \"$(perennial dev --background)\"      in the background; sets URL,
                                            CLIENT_ID and PUBLISHABLE_ID
  perennial dev --stop

CLIENT_ID is the API key of a secret client. PUBLISHABLE_ID is that of a
publishable client for web pages on localhost, port 3000 or 5173.

Uses DATABASE_URL if it is set. Otherwise starts a private PostgreSQL with the
binaries installed on this machine.")]
pub struct DevArgs {
    /// Run in the background, and print the variables to export
    #[arg(long, conflicts_with = "stop")]
    background: bool,
    /// Stop the sandbox in the background; its data is kept
    #[arg(long)]
    stop: bool,
    /// The state directory [default: ~/.local/state/perennial/dev; for root
    /// /var/lib/perennial-dev]
    #[arg(long, value_name = "DIRECTORY")]
    data: Option<PathBuf>,
    /// Print one JSON object instead of shell commands
    #[arg(long, requires = "background")]
    json: bool,
}

impl DevArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let state_dir = StateDir::open(self.data)?;
        if self.stop {
            return stop(&state_dir);
        }
        let started = Instant::now();
        if let Some(running) = state_dir.running()? {
            let url = running.url();
            if !self.background {
                bail!("a sandbox is already running at {url} (stop it with perennial dev --stop)");
            }
            eprintln!("  already running: {url}");
            running.print_variables(self.json);
            return Ok(());
        }
        let postgres = start_postgres(&state_dir)?;
        let sandbox = DevSandbox::prepare(&state_dir, &postgres)?;
        if self.background {
            sandbox.serve_in_background(&state_dir, started)?;
            sandbox.print_variables(self.json);
            return Ok(());
        }
        let stop = super::stop_signal()?;
        let mut child = sandbox.spawn_service(&state_dir, None)?;
        if let Err(error) = sandbox.wait_until_ready(&mut child) {
            state_dir.stop_running()?;
            postgres.stop_private()?;
            return Err(error);
        }
        sandbox.print_banner(started, false);
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(100)) => {}
                // Ctrl-C in a terminal also signals the child, but `kill` signals only this
                // process.
                () = stop.cancelled() => {
                    state_dir::terminate(child.id());
                    break child.wait()?;
                }
            }
        };
        state_dir.clear_running()?;
        postgres.stop_private()?;
        if status.success() {
            Ok(())
        } else {
            bail!("the service ended with {status}")
        }
    }
}

/// Returns the database in `DATABASE_URL`, or starts the private cluster.
fn start_postgres(state_dir: &StateDir) -> anyhow::Result<Postgres> {
    let url = std::env::var("DATABASE_URL").ok();
    let cluster = postgres::PrivateCluster::load(state_dir);
    match (url, cluster) {
        // An earlier `eval` has exported the URL of the private cluster.
        (Some(url), Some(cluster)) if url == cluster.url() => cluster.start(),
        (Some(url), _) if !url.is_empty() => Ok(Postgres::External(url)),
        (_, Some(cluster)) => cluster.start(),
        (_, None) => postgres::PrivateCluster::create(state_dir)?.start(),
    }
}

fn stop(state_dir: &StateDir) -> anyhow::Result<()> {
    let service_stopped = state_dir.stop_running()?;
    let postgres_stopped = match postgres::PrivateCluster::load(state_dir) {
        Some(cluster) => cluster.stop()?,
        None => false,
    };
    let result = match (service_stopped, postgres_stopped) {
        (true, true) => "stopped the sandbox and its PostgreSQL",
        (true, false) => "stopped the sandbox",
        (false, true) => "stopped its PostgreSQL; no sandbox was running",
        (false, false) => "nothing was running",
    };
    let path = state_dir.path().display();
    eprint_wrapped(&format!("{result}; the data is kept in {path}"));
    Ok(())
}

pub(super) struct DevSandbox {
    /// The environment of the service, and [`SHELL_VARIABLES`].
    variables: BTreeMap<String, String>,
    migrations_applied: usize,
}

impl DevSandbox {
    fn new(variables: BTreeMap<String, String>) -> Self {
        Self {
            variables,
            migrations_applied: 0,
        }
    }

    /// Chooses ports, migrates the database, and creates the clients that do not exist for this
    /// database.
    fn prepare(state_dir: &StateDir, postgres: &Postgres) -> anyhow::Result<Self> {
        let [listen, admin] = [
            ("PERENNIAL_LISTEN", 8080, "the API listens"),
            (
                "PERENNIAL_ADMIN_LISTEN",
                9090,
                "metrics and health checks are",
            ),
        ]
        .map(|(variable, default_port, use_of_port)| {
            let listen = ports::listen_address(variable, default_port)?;
            if let Some(replaced) = &listen.replaced {
                let address = &listen.address;
                eprint_wrapped(&format!(
                    "  {replaced} is in use; {use_of_port} on {address}"
                ));
            }
            anyhow::Ok(listen.address)
        });
        let (listen, admin) = (listen?, admin?);
        let state_path = state_dir.path().display().to_string();
        let variables = [
            ("DATABASE_URL", postgres.url()),
            ("PERENNIAL_MODE", "sandbox".to_owned()),
            ("PERENNIAL_STATE_DIR", state_path),
            ("PERENNIAL_LISTEN", listen.clone()),
            ("PERENNIAL_ADMIN_LISTEN", admin),
            ("URL", format!("http://{listen}")),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value));
        let mut sandbox = Self::new(variables.into());
        sandbox.allow_local_webhooks();
        let output = sandbox.run_json(&["migrate", "--json"])?;
        let applied = output.get("applied").and_then(Value::as_array);
        sandbox.migrations_applied = applied.map_or(0, Vec::len);
        sandbox.ensure_clients(state_dir, &postgres.url())?;
        Ok(sandbox)
    }

    fn url(&self) -> &str {
        self.variables.get("URL").map_or("", String::as_str)
    }

    /// Returns this binary as a command with the sandbox's environment.
    fn command(&self, arguments: &[&str]) -> anyhow::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        let is_setting = |(name, _): &(&String, &String)| !SHELL_VARIABLES.contains(&name.as_str());
        command
            .args(arguments)
            .envs(self.variables.iter().filter(is_setting));
        Ok(command)
    }

    /// Runs a subcommand and returns the JSON that it printed.
    fn run_json(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        Ok(serde_json::from_str(&self.run(arguments)?)?)
    }

    /// Runs a subcommand and returns what it printed.
    fn run(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = self.command(arguments)?.output()?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            bail!("{}", stderr.trim().trim_start_matches("perennial: "));
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Starts the service and saves its process id.
    fn spawn_service(&self, state_dir: &StateDir, log: Option<File>) -> anyhow::Result<Child> {
        let mut command = self.command(&["serve"])?;
        command.stdin(Stdio::null());
        if let Some(log) = log {
            // In its own process group, so that it survives the end of the terminal.
            command
                .stdout(log.try_clone()?)
                .stderr(log)
                .process_group(0);
        }
        if std::env::var_os("PERENNIAL_LOG_FORMAT").is_none() {
            command.env("PERENNIAL_LOG_FORMAT", "text");
        }
        if let Some(key) = self.explorer_client_id() {
            command.env("PERENNIAL_EXPLORER_CLIENT_ID", key);
        }
        let child = command.spawn().context("cannot start the service")?;
        state_dir.save_running(child.id(), &self.variables)?;
        Ok(child)
    }

    /// Allows webhook endpoints on this machine, unless other machines can create them.
    fn allow_local_webhooks(&mut self) {
        let name = "PERENNIAL_WEBHOOK_NETWORKS";
        if self.is_local() && std::env::var_os(name).is_none() {
            let loopback = "127.0.0.0/8,::1/128".to_owned();
            self.variables.insert(name.to_owned(), loopback);
        }
    }

    /// Returns whether only this machine can call the API.
    fn is_local(&self) -> bool {
        let listen = self.variables.get("PERENNIAL_LISTEN");
        let listen: Option<SocketAddr> = listen.and_then(|listen| listen.parse().ok());
        listen.is_some_and(|listen| listen.ip().is_loopback())
    }

    /// Returns the API key that the explorer shows, unless other machines can open it.
    fn explorer_client_id(&self) -> Option<&str> {
        let key = self.variables.get("CLIENT_ID")?;
        self.is_local().then_some(key)
    }

    fn serve_in_background(&self, state_dir: &StateDir, started: Instant) -> anyhow::Result<()> {
        const LOG_LINES: usize = 5;
        let path = state_dir.path().join("log");
        let log = File::options().create(true).append(true).open(&path)?;
        let mut child = self.spawn_service(state_dir, Some(log))?;
        if let Err(error) = self.wait_until_ready(&mut child) {
            state_dir.stop_running()?;
            let log = fs::read_to_string(&path).unwrap_or_default();
            let mut last: Vec<&str> = log.lines().rev().take(LOG_LINES).collect();
            last.reverse();
            return Err(error.context(format!("its log ends with:\n{}", last.join("\n"))));
        }
        self.print_banner(started, true);
        Ok(())
    }

    fn wait_until_ready(&self, child: &mut Child) -> anyhow::Result<()> {
        let admin = self.variables.get("PERENNIAL_ADMIN_LISTEN");
        let admin = admin.context("PERENNIAL_ADMIN_LISTEN is not set")?;
        let started = Instant::now();
        while !ports::is_ready(admin) {
            if let Some(status) = child.try_wait()? {
                bail!("the service ended with {status}");
            }
            if started.elapsed() > READY_TIMEOUT {
                let seconds = READY_TIMEOUT.as_secs();
                bail!("the service is not ready after {seconds} s");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Returns a link that signs in to the console, unless it is turned off.
    fn console_link(&self) -> Option<String> {
        let printed = self.run_json(&["console", "link", "--json"]).ok()?;
        Some(printed.get("link")?.as_str()?.to_owned())
    }

    fn print_banner(&self, started: Instant, background: bool) {
        let migrations = match self.migrations_applied {
            0 => String::new(),
            count => format!(" · {}", pluralize(count, "migration")),
        };
        let url = self.url();
        eprintln!(
            "  Perennial {} · SANDBOX · telemetry: none · ready in {:.1} s{migrations}",
            env!("CARGO_PKG_VERSION"),
            started.elapsed().as_secs_f64()
        );
        eprintln!("    API      {url}");
        eprintln!("    Docs     {url}/docs/contents");
        if let Some(link) = self.console_link() {
            eprintln!("    Console  {link}");
        }
        if background {
            eprintln!("    API key  in $CLIENT_ID (secret) and $PUBLISHABLE_ID (browser)");
            eprintln!("    Next     perennial seed --demo");
        } else {
            let client = self.variables.get("CLIENT_ID").map_or("", String::as_str);
            eprintln!("    API key  {client}");
            eprintln!("    Next     in another terminal: eval \"$(perennial dev --background)\"");
        }
    }

    /// Prints the variables as shell commands or JSON.
    fn print_variables(&self, json: bool) {
        if json {
            println!("{}", json!(self.variables));
            return;
        }
        for (name, value) in &self.variables {
            println!("export {name}='{}'", value.replace('\'', r"'\''"));
        }
        if stdout().is_terminal() {
            eprintln!("    To set these variables, run: eval \"$(perennial dev --background)\"");
        }
    }
}
