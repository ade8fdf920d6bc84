use super::Core;
use super::request::Request;
use super::route::{Passage, Routed};
use crate::digest::Challenge;
use crate::ours::{Host, Meaning};
use crate::{Event, Now, Sink, Verdict};
use sip_wire::{Name, Uri};

impl Core {
    /// Whether a request to be proxied may pass, and then whether its sender is one of our users; when not, it has been answered.
    ///
    /// Inside a dialog that we record-routed: always. A local user (by From) anywhere, with credentials. A stranger to local users only;
    /// to anywhere else only with the credentials of a local user (anonymous calls). The From user need not be the one of the credentials.
    pub(super) fn may_pass(
        &mut self,
        now: Now,
        request: &Request<'_>,
        routed: &Routed<'_>,
        sink: &mut impl Sink,
    ) -> Option<bool> {
        if routed.passage != Passage::Closed {
            return Some(false);
        }
        let from_host = self.person(&request.from_uri, request);
        let to_us = routed.host != Host::Foreign && routed.next_route.is_none();
        if from_host == Host::Foreign && to_us {
            return Some(false);
        }
        if self.settings.auth {
            let realm = self.realm(&request.from_uri, from_host);
            let header = Name::ProxyAuthorization;
            return self
                .authenticate(now, request, header, &realm, sink)
                .map(|_| true);
        }
        if from_host != Host::Foreign {
            return Some(true);
        }
        sink.event(&Event::RelayDenied {
            flow: &request.flow,
        });
        self.answer(request, 403, "Relaying Denied", b"", sink);
        None
    }

    /// What the host of a person's URI is to us.
    pub(super) fn person(&self, uri: &Uri<'_>, request: &Request<'_>) -> Host {
        self.ours.host(
            uri,
            Meaning::Person,
            request.flow.local,
            &self.shared.subscribers,
        )
    }

    /// The realm of a user: its domain.
    pub(super) fn realm(&self, uri: &Uri<'_>, host: Host) -> String {
        let domain = match host {
            Host::Domain => uri.host,
            Host::Alias | Host::Foreign => self.ours.primary(),
        };
        String::from_utf8_lossy(domain).to_ascii_lowercase()
    }

    /// Checks credentials; the user's address-of-record when they are good. Otherwise the request has been answered.
    pub(super) fn authenticate(
        &mut self,
        now: Now,
        request: &Request<'_>,
        header: Name,
        realm: &str,
        sink: &mut impl Sink,
    ) -> Option<Vec<u8>> {
        let mut aor = Vec::new();
        let shared = self.shared.clone();
        let verdict = shared.digest.verify(
            now.wall,
            self.settings.nonce_lifetime_s,
            &request.message,
            header,
            realm,
            |username| {
                aor.extend_from_slice(username);
                if !username.contains(&b'@') {
                    aor.push(b'@');
                    aor.extend_from_slice(realm.as_bytes());
                }
                shared.subscribers.ha1(&aor)
            },
        );
        let stale = match verdict {
            Verdict::Good(_) => return Some(aor),
            Verdict::Malformed => {
                self.answer(request, 400, "Malformed Credentials", b"", sink);
                return None;
            }
            Verdict::Wrong(username) => {
                self.counters.auth_failures += 1;
                sink.event(&Event::AuthFailed {
                    flow: &request.flow,
                    username,
                });
                false
            }
            Verdict::Missing => false,
            Verdict::Stale => true,
        };
        self.challenge(now, request, header, realm, stale, sink);
        None
    }

    fn challenge(
        &mut self,
        now: Now,
        request: &Request<'_>,
        header: Name,
        realm: &str,
        stale: bool,
        sink: &mut impl Sink,
    ) {
        self.counters.challenges += 1;
        let (code, header) = match header {
            Name::Authorization => (401, Name::WwwAuthenticate),
            _ => (407, Name::ProxyAuthenticate),
        };
        let unique = self.random.draw();
        let mut lines = std::mem::take(&mut self.lines);
        lines.clear();
        let challenge = Challenge {
            header,
            realm,
            stale,
            sha256: self.settings.digest_sha256,
        };
        self.shared
            .digest
            .challenge(now.wall, unique, &challenge, &mut lines);
        self.answer(request, code, "", &lines, sink);
        self.lines = lines;
    }
}
