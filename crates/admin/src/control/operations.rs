use super::protocol::{AorView, BindingView, USERS_PER_REQUEST_MAX};
use super::{Request, Response, Status, User, hex, unhex};
use location::{Binding, Flow, Ha1, Location, Subscribers, Ticket, TicketState, Transport, Wall};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Answers requests.
pub trait Answer: Send + Sync {
    /// May take as long as the disk does; never called by a worker.
    fn answer(&self, request: Request) -> Response;
}

/// The part of the server that only the process as a whole knows.
pub trait Host: Send + Sync {
    /// State and counters; `subscribers`, `bindings` and `aors` are filled in by [`Operations`].
    fn status(&self) -> Status;
    /// Reads the configuration again and names the keys that wait for a restart.
    ///
    /// # Errors
    /// What is wrong with the file; the old configuration stays.
    fn reload(&self) -> Result<Vec<String>, String>;
    /// Begins the orderly end.
    fn shut_down(&self);
    /// Subscribers were added or removed.
    fn subscribers_changed(&self);
}

/// What can be asked of a data directory: everything while its server runs, the subscribers otherwise.
pub struct Operations {
    /// Subscribers.
    pub subscribers: Arc<Subscribers>,
    /// The running server; `None`: the command line has opened the database itself.
    pub running: Option<Running>,
}

/// What only a running server has.
pub struct Running {
    /// Bindings.
    pub location: Arc<Location>,
    /// The process.
    pub host: Arc<dyn Host>,
}

impl Answer for Operations {
    fn answer(&self, request: Request) -> Response {
        self.try_answer(request)
            .unwrap_or_else(|message| Response::Error { message })
    }
}

impl Operations {
    fn try_answer(&self, request: Request) -> Result<Response, String> {
        match request {
            Request::Ping => Ok(Response::Done),
            Request::UsersPut { users, replace } => self.put(&users, replace),
            Request::UserRemove { aor } => self.remove(&aor),
            Request::UserShow { aor } => Ok(self.show(aor)),
            Request::UsersList { after, limit } => self.list(&after, limit),
            request => match &self.running {
                Some(running) => running.answer(request, &self.subscribers),
                None => Err(String::from(
                    "that needs a running server; start one with `sipolis serve`",
                )),
            },
        }
    }

    fn put(&self, users: &[User], replace: bool) -> Result<Response, String> {
        if users.len() > USERS_PER_REQUEST_MAX {
            return Err(format!(
                "at most {USERS_PER_REQUEST_MAX} users in one request"
            ));
        }
        let records: Vec<(Vec<u8>, Ha1)> = users.iter().map(record).collect::<Result<_, _>>()?;
        let existing = records
            .iter()
            .filter(|(aor, _)| self.subscribers.exists(aor))
            .count() as u64;
        if existing > 0 && !replace {
            return Err(String::from(
                "there is such a user already; `sipolis user passwd` changes a password",
            ));
        }
        self.subscribers
            .put_many(records.iter().map(|(aor, ha1)| (aor, *ha1)))
            .map_err(|error| error.to_string())?;
        self.changed();
        Ok(Response::Put {
            added: records.len() as u64 - existing,
            replaced: existing,
        })
    }

    fn remove(&self, aor: &str) -> Result<Response, String> {
        let existed = self
            .subscribers
            .remove(aor.as_bytes())
            .map_err(|error| error.to_string())?;
        if !existed {
            return Ok(Response::NotFound);
        }
        // A phone that is registered as the removed user is so no longer.
        if let Some(running) = &self.running {
            running.remove_bindings(aor.as_bytes())?;
        }
        self.changed();
        Ok(Response::Done)
    }

    fn show(&self, aor: String) -> Response {
        match self.subscribers.ha1(aor.as_bytes()) {
            Some(ha1) => Response::Users {
                users: vec![user(aor, &ha1)],
                total: self.subscribers.count(),
            },
            None => Response::NotFound,
        }
    }

    fn list(&self, after: &str, limit: usize) -> Result<Response, String> {
        let limit = limit.clamp(1, USERS_PER_REQUEST_MAX) as u32;
        let after = Some(after.as_bytes()).filter(|after| !after.is_empty());
        let page = self
            .subscribers
            .page(after, limit)
            .map_err(|error| error.to_string())?;
        let users = page.iter().map(|(aor, ha1)| user(text(aor), ha1)).collect();
        Ok(Response::Users {
            users,
            total: self.subscribers.count(),
        })
    }

    fn changed(&self) {
        if let Some(running) = &self.running {
            running.host.subscribers_changed();
        }
    }
}

impl Running {
    fn answer(&self, request: Request, subscribers: &Subscribers) -> Result<Response, String> {
        match request {
            Request::Status => Ok(Response::Status(Box::new(self.status(subscribers)))),
            Request::BindingsShow { aor } => Ok(self.show_bindings(aor)),
            Request::BindingsList { page } => Ok(self.list_bindings(page)),
            Request::BindingsRemove { aor } => {
                let count = self.remove_bindings(aor.as_bytes())?;
                Ok(Response::Removed { count })
            }
            Request::Reload => self
                .host
                .reload()
                .map(|restart| Response::Reloaded { restart }),
            Request::Shutdown => {
                self.host.shut_down();
                Ok(Response::Done)
            }
            other => Err(format!("{other:?} is not for a running server")),
        }
    }

    fn status(&self, subscribers: &Subscribers) -> Status {
        let (bindings, aors) = self.location.counts();
        Status {
            subscribers: subscribers.count(),
            bindings,
            aors,
            ..self.host.status()
        }
    }

    fn show_bindings(&self, aor: String) -> Response {
        let now = wall_now();
        let bindings = self.location.read(aor.as_bytes(), now, |bindings| {
            bindings.iter().map(|b| view(b, now)).collect::<Vec<_>>()
        });
        let aors = match bindings.is_empty() {
            true => Vec::new(),
            false => vec![AorView { aor, bindings }],
        };
        Response::Bindings { aors, next: None }
    }

    fn list_bindings(&self, page: usize) -> Response {
        let now = wall_now();
        let mut aors = Vec::new();
        let next = self.location.scan(page, now, &mut |aor, bindings| {
            if !bindings.is_empty() {
                aors.push(AorView {
                    aor: text(aor),
                    bindings: bindings.iter().map(|b| view(b, now)).collect(),
                });
            }
        });
        Response::Bindings { aors, next }
    }

    fn remove_bindings(&self, aor: &[u8]) -> Result<u64, String> {
        let change = |bindings: &mut location::Bindings<'_>| {
            let count = bindings.list().len() as u64;
            if count > 0 {
                bindings.clear();
            }
            count
        };
        let (count, ticket) = self
            .location
            .update(aor, wall_now(), change)
            .map_err(|why| format!("the bindings can't be changed now: {why:?}"))?;
        if count > 0 {
            self.wait_durable(ticket)?;
        }
        Ok(count)
    }

    /// Waits until a change is on disk; this thread is the client's own.
    fn wait_durable(&self, ticket: Ticket) -> Result<(), String> {
        let give_up = Instant::now() + Duration::from_secs(10);
        loop {
            match self.location.ticket_state(ticket) {
                TicketState::Durable => return Ok(()),
                TicketState::Waiting if Instant::now() < give_up => {
                    thread::sleep(Duration::from_millis(1));
                }
                TicketState::Waiting => {
                    return Err(String::from(
                        "the disk takes too long; see the server's log",
                    ));
                }
                TicketState::Failed => {
                    return Err(String::from(
                        "the journal can't be written; see the server's log",
                    ));
                }
            }
        }
    }
}

/// The control plane's own clock.
fn wall_now() -> Wall {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Wall(since.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX)))
}

fn record(user: &User) -> Result<(Vec<u8>, Ha1), String> {
    fn hash<const N: usize>(user: &User, text: &str) -> Result<[u8; N], String> {
        if text.is_empty() {
            return Ok([0; N]);
        }
        unhex(text).ok_or_else(|| format!("{}: a hash is not {} hex digits", user.aor, 2 * N))
    }
    match user.aor.split_once('@') {
        Some((name, domain)) if !name.is_empty() && !domain.is_empty() => {}
        _ => return Err(format!("`{}` is not user@domain", user.aor)),
    }
    let ha1 = Ha1 {
        md5: hash(user, &user.ha1)?,
        sha256: hash(user, &user.ha1_sha256)?,
    };
    if ha1.md5 == [0; 16] && ha1.sha256 == [0; 32] {
        return Err(format!("{}: a password hash is missing", user.aor));
    }
    Ok((user.aor.clone().into_bytes(), ha1))
}

fn user(aor: String, ha1: &Ha1) -> User {
    let known = |bytes: &[u8]| match bytes.iter().all(|&b| b == 0) {
        true => String::new(),
        false => hex(bytes),
    };
    User {
        aor,
        ha1: known(&ha1.md5),
        ha1_sha256: known(&ha1.sha256),
    }
}

fn view(binding: &Binding, now: Wall) -> BindingView {
    let parts = binding.parts();
    let Flow {
        transport,
        local,
        peer,
        ..
    } = parts.flow;
    BindingView {
        contact: text(parts.contact),
        params: text(parts.params),
        transport: transport_name(transport).to_owned(),
        peer: peer.to_string(),
        local: local.to_string(),
        expires_s: parts.expires.seconds_since(now),
        q: parts.q,
        instance: text(parts.instance),
        path: text(parts.path),
        user_agent: text(parts.user_agent),
        behind_nat: parts.behind_nat,
    }
}

fn transport_name(transport: Transport) -> &'static str {
    match transport {
        Transport::Udp => "udp",
        Transport::Tcp => "tcp",
        Transport::Tls => "tls",
        Transport::Ws => "ws",
        Transport::Wss => "wss",
        Transport::Sctp => "sctp",
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use location::{BindingParts, Options};

    struct NoHost;
    impl Host for NoHost {
        fn status(&self) -> Status {
            Status {
                version: String::from("1"),
                ..Status::default()
            }
        }
        fn reload(&self) -> Result<Vec<String>, String> {
            Err(String::from("sipolis.toml:1: no"))
        }
        fn shut_down(&self) {}
        fn subscribers_changed(&self) {}
    }

    fn operations(running: bool) -> (tempfile::TempDir, Operations) {
        let data = tempfile::tempdir().unwrap();
        let subscribers = Subscribers::open(data.path(), [1, 2]).unwrap();
        let location = Arc::new(Location::new(Options {
            hash_key: [1, 2],
            waiting_bytes_max: 1 << 20,
            aor_count_max: 1000,
        }));
        let operations = Operations {
            subscribers: Arc::new(subscribers),
            running: running.then(|| Running {
                location,
                host: Arc::new(NoHost),
            }),
        };
        (data, operations)
    }

    fn alice() -> User {
        User {
            aor: String::from("alice@example.com"),
            ha1: String::from("00112233445566778899aabbccddeeff"),
            ha1_sha256: String::new(),
        }
    }

    fn put(users: Vec<User>, replace: bool) -> Request {
        Request::UsersPut { users, replace }
    }

    /// A location whose writer is this thread.
    fn commit(location: &Location) {
        if let Some(batch) = location.take_batch() {
            location.batch_written(batch);
        }
    }

    #[test]
    fn a_user_is_added_once_replaced_on_request_and_removed() {
        let (_data, operations) = operations(false);
        let aor = || String::from("alice@example.com");
        let done = |added, replaced| Response::Put { added, replaced };
        assert_eq!(operations.answer(put(vec![alice()], false)), done(1, 0));
        assert!(matches!(
            operations.answer(put(vec![alice()], false)),
            Response::Error { message } if message.contains("passwd")
        ));
        assert_eq!(operations.answer(put(vec![alice()], true)), done(0, 1));
        let shown = Response::Users {
            users: vec![alice()],
            total: 1,
        };
        assert_eq!(operations.answer(Request::UserShow { aor: aor() }), shown);
        let remove = || operations.answer(Request::UserRemove { aor: aor() });
        assert_eq!(remove(), Response::Done);
        assert_eq!(remove(), Response::NotFound);
    }

    #[test]
    fn a_request_with_one_wrong_user_changes_nothing() {
        for wrong in [
            User {
                aor: String::from("bob"),
                ..alice()
            },
            User {
                ha1: String::from("short"),
                ..alice()
            },
            User {
                ha1: String::new(),
                ..alice()
            },
        ] {
            let (_data, operations) = operations(false);
            let response = operations.answer(put(vec![alice(), wrong.clone()], true));
            assert!(matches!(response, Response::Error { .. }), "{wrong:?}");
            assert_eq!(operations.subscribers.count(), 0, "{wrong:?}");
        }
    }

    #[test]
    fn pages_of_users_come_in_order_and_end() {
        let (_data, operations) = operations(false);
        let names: Vec<_> = (0..5).map(|n| format!("user{n}@example.com")).collect();
        let users = names.iter().map(|aor| User {
            aor: aor.clone(),
            ..alice()
        });
        operations.answer(put(users.collect(), true));
        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let Response::Users { users, total } = operations.answer(Request::UsersList {
                after: after.clone(),
                limit: 2,
            }) else {
                panic!("a list is asked for");
            };
            assert_eq!(total, 5);
            let Some(last) = users.last() else { break };
            after.clone_from(&last.aor);
            seen.extend(users.into_iter().map(|user| user.aor));
        }
        assert_eq!(seen, names);
    }

    #[test]
    fn bindings_are_listed_and_removed_once_that_is_on_disk() {
        let (_data, operations) = operations(true);
        let location = Arc::clone(&operations.running.as_ref().unwrap().location);
        let aor = || String::from("alice@example.com");
        let flow = Flow {
            transport: Transport::Tcp,
            listener: 0,
            connection: 7,
            local: "192.0.2.1:5060".parse().unwrap(),
            peer: "192.0.2.2:40000".parse().unwrap(),
        };
        let binding = Binding::new(&BindingParts {
            contact: b"sip:alice@192.0.2.2:40000",
            params: b"",
            instance: b"",
            reg_id: 0,
            q: 1000,
            call_id: b"c",
            cseq: 1,
            expires: wall_now().after_s(60),
            flow,
            behind_nat: false,
            path: b"",
            user_agent: b"phone",
        });
        let added = location.update(aor().as_bytes(), wall_now(), |bindings| {
            bindings.push(binding)
        });
        assert!(added.is_ok());
        commit(&location);

        let list = |page| operations.answer(Request::BindingsList { page });
        let (mut found, mut page) = (Vec::new(), Some(0));
        while let Some(this) = page {
            let Response::Bindings { aors, next } = list(this) else {
                panic!("a list is asked for");
            };
            found.extend(aors);
            page = next;
        }
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].bindings[0].transport, "tcp");
        assert_eq!(found[0].bindings[0].peer, "192.0.2.2:40000");

        let removed = thread::scope(|scope| {
            let asked = scope.spawn(|| operations.answer(Request::BindingsRemove { aor: aor() }));
            while !asked.is_finished() {
                commit(&location);
                thread::yield_now();
            }
            asked.join().unwrap()
        });
        assert_eq!(removed, Response::Removed { count: 1 });
        assert_eq!(
            operations.answer(Request::BindingsShow { aor: aor() }),
            Response::Bindings {
                aors: Vec::new(),
                next: None
            }
        );
    }

    #[test]
    fn without_a_server_only_users_can_be_asked_for() {
        let (_data, operations) = operations(false);
        for request in [
            Request::Status,
            Request::BindingsList { page: 0 },
            Request::Reload,
        ] {
            let response = operations.answer(request.clone());
            assert!(
                matches!(&response, Response::Error { message } if message.contains("sipolis serve")),
                "{request:?}: {response:?}"
            );
        }
    }

    #[test]
    fn a_reload_that_fails_says_what_is_wrong() {
        let (_data, operations) = operations(true);
        assert_eq!(
            operations.answer(Request::Reload),
            Response::Error {
                message: String::from("sipolis.toml:1: no")
            }
        );
        assert!(matches!(
            operations.answer(Request::Status),
            Response::Status(status) if status.version == "1"
        ));
    }
}
