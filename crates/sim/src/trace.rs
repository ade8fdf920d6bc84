/// What happened in a run, as a hash that two runs of one seed must share, and as lines for a person when asked for.
pub(crate) struct Trace {
    hash: u64,
    print: bool,
}

impl Trace {
    pub(crate) fn new(print: bool) -> Self {
        Self {
            hash: 0xcbf2_9ce4_8422_2325,
            print,
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// A message is sent or arrives.
    pub(crate) fn message(
        &mut self,
        now_us: u64,
        what: &'static str,
        who: impl std::fmt::Display,
        bytes: &[u8],
    ) {
        self.mix(now_us);
        self.mix_bytes(what.as_bytes());
        self.mix_bytes(bytes);
        if self.print {
            self.line(now_us, format_args!("{what} {who}: {}", Summary(bytes)));
        }
    }

    /// Anything else.
    pub(crate) fn event(&mut self, now_us: u64, what: std::fmt::Arguments<'_>) {
        self.mix(now_us);
        if self.print {
            self.line(now_us, what);
        }
    }

    fn line(&self, now_us: u64, what: std::fmt::Arguments<'_>) {
        println!("{:>5}.{:06} {what}", now_us / 1_000_000, now_us % 1_000_000);
    }

    fn mix(&mut self, value: u64) {
        self.hash = (self.hash ^ value)
            .wrapping_mul(0x9fb2_1c65_1e98_df25)
            .rotate_left(29);
    }

    fn mix_bytes(&mut self, bytes: &[u8]) {
        self.mix(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }
}

/// The start line, CSeq and Call-ID of a message.
struct Summary<'a>(&'a [u8]);

impl std::fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = String::from_utf8_lossy(self.0);
        let mut lines = text.split("\r\n");
        write!(f, "{}", lines.next().unwrap_or_default())?;
        for line in lines.take_while(|line| !line.is_empty()) {
            if ["CSeq:", "Call-ID:"]
                .iter()
                .any(|name| line.starts_with(name))
            {
                write!(f, " | {line}")?;
            }
        }
        Ok(())
    }
}
