use crate::phone::{Phone, Transport};
use crate::{Case, Peer, within};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The domain that the server serves in every case.
pub const DOMAIN: &str = "example.test";

/// The password of every user.
pub const PASSWORD: &str = "correct-horse";

/// The server under test.
pub struct Server {
    peer: Option<Peer>,
    /// Where it listens, by UDP and TCP.
    pub address: SocketAddr,
    /// Its data.
    pub data: PathBuf,
    command: Vec<String>,
    log: PathBuf,
}

impl Server {
    /// Starts one with these users and waits until it answers. `config` is the rest of its TOML file; a `listen` in it
    /// is on top of the case's own address.
    ///
    /// # Panics
    /// When it does not answer in time.
    #[must_use]
    pub fn start(case: &Case, users: &[&str], config: &str) -> Self {
        let data = case.path("data");
        let file = case.write("sipolis.toml", &Self::config(case, &data, config));
        let mut server = Self {
            peer: None,
            address: case.address(1),
            data,
            command: vec![String::from("--config"), file.display().to_string()],
            log: case.path("server.log"),
        };
        if !users.is_empty() {
            server.import(case, users);
        }
        server.again();
        server
    }

    /// Adds the users, all with [`PASSWORD`].
    ///
    /// # Panics
    /// When the command fails.
    pub fn import(&self, case: &Case, users: &[&str]) {
        let lines = users
            .iter()
            .map(|user| format!("{user},{DOMAIN},{PASSWORD}\n"));
        let csv = format!("user,domain,password\n{}", lines.collect::<String>());
        let file = case.write("users.csv", &csv);
        self.cli(&["user", "import", &file.display().to_string()]);
    }

    /// Starts it again after [`Self::kill`], on the same data.
    ///
    /// # Panics
    /// When it does not answer in time.
    pub fn again(&mut self) {
        let mut command = Command::new(binary());
        command.arg("serve").args(&self.command);
        let mut peer = Peer::start(&mut command, self.log.clone());
        let mut phone = Phone::udp(SocketAddr::new(self.address.ip(), 0));
        within(20, "an answer to OPTIONS", || {
            assert!(peer.ended().is_none(), "the server ended:\n{}", peer.said());
            phone.send(phone.options(self.address), self.address);
            phone.receive_for(200).map(|_| ())
        });
        self.peer = Some(peer);
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.peer = None;
    }

    /// Its process id, while it runs.
    #[must_use]
    pub fn peer_id(&self) -> Option<u32> {
        self.peer.as_ref().map(Peer::id)
    }

    /// The running process.
    ///
    /// # Panics
    /// After [`Self::kill`].
    pub fn peer(&mut self) -> &mut Peer {
        self.peer.as_mut().expect("the server runs")
    }

    /// Answers OPTIONS by UDP and by TCP, in a moment.
    ///
    /// # Panics
    /// When it does not; `after` says what it went through.
    pub fn is_healthy(&mut self, after: &str) {
        let any = SocketAddr::new(self.address.ip(), 0);
        for transport in [Transport::Udp, Transport::Tcp] {
            let mut phone = Phone::new(transport, any, self.address);
            let options = phone.options(self.address);
            let answer = phone.ask(&options, self.address);
            assert_eq!(
                answer.map(|answer| answer.status()),
                Some(200),
                "OPTIONS by {transport:?} after {after}"
            );
        }
        let ended = self.peer().ended();
        assert!(
            ended.is_none(),
            "the server ended after {after}:\n{}",
            self.peer().said()
        );
    }

    /// Runs `sipolis ARGS` on this server's configuration and gives what it prints.
    ///
    /// # Panics
    /// When it fails.
    pub fn cli(&self, args: &[&str]) -> String {
        let output = Command::new(binary())
            .args(args)
            .args(&self.command)
            .output();
        let output = output.expect("sipolis runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "sipolis {args:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn config(case: &Case, data: &Path, config: &str) -> String {
        let address = case.address(1);
        let (more, rest) = match config.strip_prefix("listen = [") {
            Some(config) => config.split_once("]\n").expect("a line of the list"),
            None => ("", config),
        };
        format!(
            "listen = [\"udp://{address}\", \"tcp://{address}\", {more}]\ndata = \"{}\"\ndomains = [\"{DOMAIN}\"]\n{rest}",
            data.display()
        )
    }
}

/// The server's program: the one that `SIPOLIS_BIN` names, otherwise made from the present sources.
pub(crate) fn binary() -> &'static PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(path) = std::env::var_os("SIPOLIS_BIN") {
            return path.into();
        }
        // target/PROFILE/deps/this-test
        let test = std::env::current_exe().expect("the path of this test");
        let folder = test
            .ancestors()
            .nth(2)
            .expect("the folder of the profile")
            .to_owned();
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", "sipolis"]);
        if folder.ends_with("release") {
            build.arg("--release");
        }
        let built = build.current_dir(env!("CARGO_MANIFEST_DIR")).status();
        assert!(
            built.is_ok_and(|status| status.success()),
            "cargo build --package sipolis"
        );
        folder.join("sipolis")
    })
}
