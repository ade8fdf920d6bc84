//! Single messages, and races that need exact order, by phones that send what they are told to.

use interop::{Case, DOMAIN, Message, Phone, Server, Transport};

/// A server with alice, bob and their registered phones: alice's, and two of bob's.
struct City {
    case: Case,
    server: Server,
}

impl City {
    fn new(name: &str, config: &str) -> Self {
        let case = Case::new(name);
        let server = Server::start(&case, &["alice", "bob"], config);
        Self { case, server }
    }

    /// A phone at the party's address, registered for the user.
    fn phone(&self, transport: Transport, party: u8, user: &str) -> Phone {
        let mut phone = Phone::new(transport, self.case.address(party), self.server.address);
        let done = phone.register_with_digest(user, &format!("reg{party}"), 1, self.server.address);
        assert_eq!(done.status(), 200, "{}", done.text);
        phone
    }

    /// What comes back for a request from a stranger.
    fn stranger(&self, method: &str, uri: &str) -> u16 {
        let mut phone = Phone::udp(self.case.address(9));
        let request = phone.request(method, uri, "mallory", "stranger", 1, "");
        let request = request.replace(&format!("mallory@{DOMAIN}"), "mallory@elsewhere.invalid");
        let answer = phone.ask(&request, self.server.address);
        answer.map_or(0, |answer| answer.status())
    }
}

#[test]
fn a_stranger_reaches_local_users_and_must_authenticate_for_the_world() {
    let city = City::new("stranger", "");
    let mut bob = city.phone(Transport::Udp, 2, "bob");
    assert_eq!(city.stranger("INVITE", "sip:someone@other.invalid"), 407);
    assert_eq!(city.stranger("MESSAGE", "sip:someone@192.0.2.7"), 407);
    assert_eq!(
        city.stranger("INVITE", &format!("sip:nobody@{DOMAIN}")),
        404
    );

    let stranger = Phone::udp(city.case.address(8));
    let request = stranger.request(
        "INVITE",
        &format!("sip:bob@{DOMAIN}"),
        "mallory",
        "reach",
        1,
        "",
    );
    let request = request.replace(&format!("mallory@{DOMAIN}"), "mallory@elsewhere.invalid");
    stranger.send(&request, city.server.address);
    let invite = bob.receive_start("INVITE ");
    assert_eq!(invite.header("Call-ID").as_deref(), Some("reach"));
}

#[test]
fn who_claims_to_be_a_local_user_is_challenged() {
    let city = City::new("claim", "");
    for method in ["INVITE", "SUBSCRIBE", "MESSAGE"] {
        let mut phone = Phone::udp(city.case.address(3));
        let request = phone.request(
            method,
            &format!("sip:bob@{DOMAIN}"),
            "alice",
            "claim",
            1,
            "",
        );
        let answer = phone.ask(&request, city.server.address).expect("an answer");
        assert_eq!(answer.status(), 407, "{method}");
        assert!(
            answer.header("Proxy-Authenticate").is_some(),
            "{}",
            answer.text
        );
    }
}

#[test]
fn options_to_the_server_says_what_it_takes() {
    let city = City::new("options", "");
    for transport in [Transport::Udp, Transport::Tcp] {
        let mut phone = Phone::new(transport, city.case.address(3), city.server.address);
        let options = phone.options(city.server.address);
        let answer = phone.ask(&options, city.server.address).expect("an answer");
        assert_eq!(answer.status(), 200);
        let allow = answer.header("Allow").expect("Allow");
        assert!(
            allow.contains("REGISTER") && allow.contains("INVITE"),
            "{allow}"
        );
    }
}

/// Alice's INVITE to bob with digest, up to where bob's phones ring.
fn invite(city: &City, alice: &mut Phone) -> String {
    let uri = format!("sip:bob@{DOMAIN}");
    let contact = format!("Contact: <{}>\r\n", alice.contact("alice"));
    let request = alice.request("INVITE", &uri, "alice", "call", 1, &contact);
    let challenge = alice
        .ask(&request, city.server.address)
        .expect("a challenge");
    let ack = request.replace("INVITE", "ACK");
    let tag = challenge.header("To").expect("To");
    alice.send(
        ack.replace(&format!("To: <{uri}>"), &format!("To: {tag}")),
        city.server.address,
    );
    let credentials = challenge.credentials("INVITE", &uri, "alice", interop::PASSWORD);
    let request = alice.request(
        "INVITE",
        &uri,
        "alice",
        "call",
        2,
        &(contact + &credentials),
    );
    alice.send(&request, city.server.address);
    request
}

fn answer(phone: &Phone, city: &City, request: &Message, status: &str, tag: &str) {
    let contact = format!("Contact: <{}>\r\n", phone.contact("bob"));
    phone.send(
        Phone::answer(request, status, tag, &contact),
        city.server.address,
    );
}

#[test]
fn two_answers_at_once_both_reach_the_caller() {
    let city = City::new("race", "workers = 2\n");
    let mut alice = city.phone(Transport::Tcp, 2, "alice");
    let mut desk = city.phone(Transport::Udp, 3, "bob");
    let mut soft = city.phone(Transport::Tcp, 4, "bob");
    invite(&city, &mut alice);
    let (at_desk, at_soft) = (desk.receive_start("INVITE "), soft.receive_start("INVITE "));
    answer(&soft, &city, &at_soft, "180 Ringing", "soft");
    alice.receive_start("SIP/2.0 180");
    answer(&desk, &city, &at_desk, "200 OK", "desk");
    // The other phone answers although it has been told to stop: the CANCEL crossed its 200.
    let cancel = soft.receive_start("CANCEL ");
    let reason = cancel.header("Reason").unwrap_or_default();
    assert!(
        reason.contains("cause=200"),
        "a phone shows a missed call without it: {}",
        cancel.text
    );
    answer(&soft, &city, &at_soft, "200 OK", "soft");
    answer(&soft, &city, &cancel, "200 OK", "soft");
    let tags = [
        alice.receive_start("SIP/2.0 200"),
        alice.receive_start("SIP/2.0 200"),
    ]
    .map(|answer| answer.header("To").unwrap_or_default());
    assert!(
        tags[0].ends_with("tag=desk") && tags[1].ends_with("tag=soft"),
        "{tags:?}"
    );
}

#[test]
fn a_6xx_ends_the_ringing_of_all() {
    let city = City::new("decline", "");
    let mut alice = city.phone(Transport::Udp, 2, "alice");
    let mut desk = city.phone(Transport::Udp, 3, "bob");
    let mut soft = city.phone(Transport::Tcp, 4, "bob");
    invite(&city, &mut alice);
    let (at_desk, at_soft) = (desk.receive_start("INVITE "), soft.receive_start("INVITE "));
    answer(&soft, &city, &at_soft, "180 Ringing", "soft");
    alice.receive_start("SIP/2.0 180");
    answer(&desk, &city, &at_desk, "603 Decline", "desk");
    let cancel = soft.receive_start("CANCEL ");
    answer(&soft, &city, &cancel, "200 OK", "soft");
    answer(&soft, &city, &at_soft, "487 Request Terminated", "soft");
    soft.receive_start("ACK ");
    let end = alice.receive_start("SIP/2.0 6");
    assert_eq!(end.status(), 603);
}

#[test]
fn a_phone_that_lost_its_connection_is_reached_over_the_new_one() {
    let city = City::new("reconnect", "workers = 2\n");
    let mut alice = city.phone(Transport::Udp, 2, "alice");
    let old = city.phone(Transport::Tcp, 3, "bob");
    old.hang_up();
    let mut new = Phone::tcp(city.server.address);
    let done = new.register_with_digest("bob", "reg3", 10, city.server.address);
    assert_eq!(done.status(), 200, "{}", done.text);
    invite(&city, &mut alice);
    new.receive_start("INVITE ");
}

#[test]
fn a_call_goes_from_ipv6_to_ipv4() {
    let case = Case::new("ipv6");
    let v6 = std::net::SocketAddr::new(std::net::Ipv6Addr::LOCALHOST.into(), 23960);
    let server = Server::start(
        &case,
        &["alice", "bob"],
        &format!("listen = [\"udp://{v6}\", \"tcp://{v6}\"]\n"),
    );
    let city = City { case, server };
    let mut bob = city.phone(Transport::Udp, 3, "bob");
    let mut alice = Phone::tcp(v6);
    assert_eq!(
        alice.register_with_digest("alice", "reg6", 1, v6).status(),
        200
    );
    invite(&city, &mut alice);
    let at_bob = bob.receive_start("INVITE ");
    let routes: Vec<String> = at_bob.headers("Record-Route").collect();
    let routes = routes.join(", ");
    assert!(
        routes.contains("[::1]") && routes.contains(&city.case.host(1).to_string()),
        "two sides: {routes}"
    );
    answer(&bob, &city, &at_bob, "200 OK", "bob");
    alice.receive_start("SIP/2.0 200");
}

#[test]
fn a_user_added_while_the_server_runs_can_register_at_once() {
    let city = City::new("add", "");
    let mut phone = Phone::udp(city.case.address(2));
    let before = phone.register_with_digest("carol", "reg2", 1, city.server.address);
    assert_eq!(before.status(), 401, "{}", before.text);
    city.server.import(&city.case, &["carol"]);
    let after = phone.register_with_digest("carol", "reg2", 3, city.server.address);
    assert_eq!(after.status(), 200, "{}", after.text);
}

#[test]
fn no_password_is_in_the_data_or_in_the_log() {
    let mut city = City::new("secret", "");
    drop(city.phone(Transport::Udp, 2, "alice"));
    city.server.peer().terminate();
    city.server.peer().ends(20);
    let mut files = vec![city.case.path("server.log")];
    let data = std::fs::read_dir(&city.server.data).expect("the data folder");
    files.extend(
        data.filter_map(|file| Some(file.ok()?.path()))
            .filter(|path| path.is_file()),
    );
    assert!(files.len() > 2, "{files:?}");
    for file in files {
        let bytes = std::fs::read(&file).expect("a file");
        let found = bytes
            .windows(interop::PASSWORD.len())
            .any(|part| part == interop::PASSWORD.as_bytes());
        assert!(!found, "{}", file.display());
    }
}
