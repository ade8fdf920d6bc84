use crate::server::{DOMAIN, PASSWORD};
use crate::{Case, Peer, Transport, within};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Port of baresip's control interface, at the party's own address.
const CONTROL_PORT: u16 = 23044;

/// A baresip without a screen or a sound card: it plays a tone into its calls and records what it hears.
pub struct Baresip {
    peer: Peer,
    control: TcpStream,
    /// Everything that the control interface has said.
    events: String,
    recordings: PathBuf,
}

impl Baresip {
    /// Starts one at the case's address `party` and waits until it is registered. `tone_hz` is what it plays; calls
    /// are answered when `answers`.
    ///
    /// # Panics
    /// When it does not register.
    #[must_use]
    pub fn start(
        case: &Case,
        party: u8,
        transport: Transport,
        user: &str,
        tone_hz: u32,
        answers: bool,
    ) -> Self {
        let (host, server) = (case.host(party), case.address(1));
        let folder = format!("baresip{party}");
        let recordings = case.path(&folder);
        let transport = transport.name().to_ascii_lowercase();
        let answermode = if answers { "auto" } else { "manual" };
        case.write(
            &format!("{folder}/accounts"),
            &format!(
                "<sip:{user}@{DOMAIN};transport={transport}>;auth_pass={PASSWORD};regint=60;audio_codecs=PCMU/8000/1;\
                 outbound=\"sip:{server};transport={transport}\";answermode={answermode}\n"
            ),
        );
        case.write(&format!("{folder}/contacts"), "");
        let control = SocketAddr::new(host, CONTROL_PORT);
        let config = format!(
            "sip_listen {}\nnet_interface {host}\nctrl_tcp_listen {control}\nrtp_ports 23100-23200\n\
             audio_source ausine,{tone_hz}\naudio_player aubridge,null\naudio_alert aubridge,ring\nsnd_path {}\n{CONFIG}",
            case.address(party),
            recordings.display(),
        );
        case.write(&format!("{folder}/config"), &config);
        let mut command = Command::new("baresip");
        command.arg("-f").arg(&recordings);
        let mut peer = Peer::start(&mut command, case.path(&format!("{folder}.log")));
        peer.says("[1 binding]", 20);
        let control = within(10, "baresip's control interface", || {
            TcpStream::connect(control).ok()
        });
        control
            .set_read_timeout(Some(Duration::from_millis(50)))
            .expect("a timeout");
        Self {
            peer,
            control,
            events: String::new(),
            recordings,
        }
    }

    /// Calls the user.
    ///
    /// # Panics
    /// When the control interface is gone.
    pub fn dials(&mut self, user: &str) {
        self.command("dial", &format!("sip:{user}@{DOMAIN}"));
    }

    /// Ends its call.
    ///
    /// # Panics
    /// When the control interface is gone.
    pub fn hangs_up(&mut self) {
        self.command("hangup", "");
    }

    /// Puts its call on hold, or takes it back.
    ///
    /// # Panics
    /// When the control interface is gone.
    pub fn holds(&mut self, hold: bool) {
        self.command(if hold { "hold" } else { "resume" }, "");
    }

    /// Waits for an event of its control interface, such as `CALL_ESTABLISHED`, that came after the ones awaited before.
    ///
    /// # Panics
    /// When it does not come.
    pub fn sees(&mut self, event: &str) {
        let Self {
            peer,
            control,
            events,
            ..
        } = self;
        let word = format!("\"{event}\"");
        within(20, &format!("baresip's {event}"), || {
            let mut buffer = [0; 4096];
            let count = control.read(&mut buffer).unwrap_or(0);
            events.push_str(&String::from_utf8_lossy(&buffer[..count]));
            assert!(peer.ended().is_none(), "baresip ended:\n{}", peer.said());
            let at = events.find(&word)?;
            events.drain(..at + word.len());
            Some(())
        });
    }

    /// The tone that it hears, in Hz, once it has heard half a second of it.
    ///
    /// # Panics
    /// When it hears nothing.
    #[must_use]
    pub fn hears(&self) -> u32 {
        within(20, "audio", || {
            let files = std::fs::read_dir(&self.recordings).ok()?;
            let mut files = files.filter_map(|file| Some(file.ok()?.path()));
            let file = files.find(|path| path.to_string_lossy().ends_with("-dec.wav"))?;
            tone(&std::fs::read(file).ok()?)
        })
    }

    fn command(&mut self, command: &str, params: &str) {
        let text = format!("{{\"command\":\"{command}\",\"params\":\"{params}\",\"token\":\"t\"}}");
        let sent = write!(self.control, "{}:{text},", text.len());
        sent.expect("baresip's control interface");
    }
}

/// The tone of a WAV file's last half second of 16-bit samples, by its zero crossings; nothing while it is shorter,
/// or silent.
fn tone(wav: &[u8]) -> Option<u32> {
    let number = |at: usize| Some(u32::from_le_bytes(wav.get(at..at + 4)?.try_into().ok()?));
    let (channels, rate) = (
        u16::from_le_bytes(wav.get(22..24)?.try_into().ok()?),
        number(24)?,
    );
    let samples: Vec<i16> = wav
        .get(44..)?
        .chunks_exact(2 * usize::from(channels))
        .map(|frame| i16::from_le_bytes([frame[0], frame[1]]))
        .collect();
    let half_second = samples.get(samples.len().checked_sub(rate as usize / 2)?..)?;
    let loudest = half_second
        .iter()
        .map(|sample| sample.unsigned_abs())
        .max()?;
    let crossings = half_second
        .windows(2)
        .filter(|pair| (pair[0] < 0) != (pair[1] < 0))
        .count();
    (loudest > 1000).then_some(crossings as u32)
}

/// What is the same for all: the audio path runs at 48 kHz in stereo, as the tone generator wants it.
const CONFIG: &str = "\
poll_method epoll
call_local_timeout 120
call_max_calls 4
ausrc_srate 48000
auplay_srate 48000
ausrc_channels 2
auplay_channels 2
module_path /usr/lib/baresip/modules
module g711.so
module ausine.so
module aubridge.so
module sndfile.so
module_tmp account.so
module_app menu.so
module_app ctrl_tcp.so
";
