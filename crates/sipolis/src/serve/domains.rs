use config::Config;
use location::Subscribers;
use sip_core::Domains;
use std::fs;
use std::path::Path;

/// File in the data directory that holds the primary domain that was chosen by the users'.
const CHOSEN: &str = "primary-domain";

/// The domains to serve.
///
/// The primary one, for which the machine's own addresses and names stand, is the first configured; otherwise that of the
/// first user, which then stays also when users of other domains come; otherwise the name of the host.
pub(super) fn domains(
    config: &Config,
    data: &Path,
    subscribers: &Subscribers,
    listeners: &[edge::Listen],
) -> Domains {
    let host = host_name();
    let configured: Vec<_> = config.server.domains.iter().map(|d| d.0.clone()).collect();
    let primary = match configured.first() {
        Some(first) => first.clone(),
        None => of_subscribers(data, subscribers).unwrap_or_else(|| host.clone()),
    };
    let mut names = configured;
    if !names.contains(&primary) {
        names.push(primary.clone());
    }
    let mut aliases: Vec<_> = net::local_addresses()
        .unwrap_or_default()
        .iter()
        .map(ToString::to_string)
        .collect();
    aliases.extend(
        [host, String::from("localhost")]
            .into_iter()
            .filter(|name| !names.contains(name)),
    );
    let mut ports: Vec<_> = listeners.iter().map(|l| l.address.port()).collect();
    ports.sort_unstable();
    ports.dedup();
    Domains {
        primary,
        names,
        aliases,
        ports,
    }
}

fn of_subscribers(data: &Path, subscribers: &Subscribers) -> Option<String> {
    let file = data.join(CHOSEN);
    let chosen = fs::read_to_string(&file).unwrap_or_default();
    if subscribers.serves_domain(chosen.trim().as_bytes()) {
        return Some(chosen.trim().to_owned());
    }
    let first = subscribers.domains().into_iter().next()?;
    let first = String::from_utf8(first.into()).ok()?;
    // On a full disk the choice is made again at the next start, most likely the same.
    let _ = fs::write(&file, &first);
    Some(first)
}

/// The name of this machine, in lower case.
fn host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" | "(none)" => String::from("localhost"),
        name => name.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use location::Ha1;

    const HA1: Ha1 = Ha1 {
        md5: [1; 16],
        sha256: [1; 32],
    };

    fn primary(config: &Config, data: &Path, subscribers: &Subscribers) -> String {
        domains(config, data, subscribers, &[]).primary
    }

    #[test]
    fn the_primary_domain_is_configured_or_the_first_users_or_the_hosts() {
        let data = tempfile::tempdir().unwrap();
        let subscribers = Subscribers::in_memory([1, 2]);
        let mut config = Config::default();
        assert_eq!(primary(&config, data.path(), &subscribers), host_name());
        subscribers.insert_in_memory(b"alice@b.example", HA1);
        assert_eq!(primary(&config, data.path(), &subscribers), "b.example");
        config.server.domains = vec![config::Domain(String::from("c.example"))];
        assert_eq!(primary(&config, data.path(), &subscribers), "c.example");
    }

    #[test]
    fn the_primary_domain_stays_when_users_of_another_domain_come() {
        let data = tempfile::tempdir().unwrap();
        let subscribers = Subscribers::in_memory([1, 2]);
        let config = Config::default();
        subscribers.insert_in_memory(b"alice@b.example", HA1);
        assert_eq!(primary(&config, data.path(), &subscribers), "b.example");
        subscribers.insert_in_memory(b"alice@a.example", HA1);
        assert_eq!(primary(&config, data.path(), &subscribers), "b.example");
        subscribers.remove_in_memory(b"alice@b.example");
        assert_eq!(primary(&config, data.path(), &subscribers), "a.example");
    }

    #[test]
    fn the_machines_own_addresses_and_names_stand_for_the_primary_domain() {
        let data = tempfile::tempdir().unwrap();
        let domains = domains(
            &Config::default(),
            data.path(),
            &Subscribers::in_memory([1, 2]),
            &[],
        );
        assert!(domains.aliases.contains(&String::from("127.0.0.1")));
        assert!(
            domains.aliases.contains(&String::from("localhost")) || domains.primary == "localhost"
        );
    }
}
