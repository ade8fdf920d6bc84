//! SIPp's scenarios from one line each; [`crate::Sipp`] says what the steps mean.

use std::fmt::Write as _;

/// The scenario as SIPp reads it.
pub(crate) fn xml(script: &str) -> String {
    let mut writer = Writer::default();
    for step in script.split(" | ") {
        writer.step(step);
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- {} -->\n<scenario name=\"{}\">\n{}</scenario>\n",
        script.replace("--", ""),
        script.replace(['<', '>', '"', '&'], ""),
        writer.xml
    )
}

/// What the steps so far have come to.
#[derive(Default)]
struct Writer {
    xml: String,
    /// Number of the next message: SIPp derives branches from it.
    index: usize,
    /// Of the last INVITE sent, and its CSeq.
    invite_at: usize,
    invite_cseq: u32,
    cseq: u32,
    /// Our INVITE has a dialog; or, for a callee, requests of ours go in one.
    dialog: bool,
    /// An INVITE came: we are the callee.
    called: bool,
    /// The last request that came was an INVITE.
    invite_last: bool,
    /// The last request that came has no To tag.
    tagless: bool,
    /// The last final response that came was no 2xx.
    failed: bool,
}

impl Writer {
    fn step(&mut self, step: &str) {
        let (kind, rest) = step.split_once(' ').unwrap_or((step, ""));
        match (kind, rest) {
            ("wait", time) => {
                let _ = writeln!(self.xml, "<pause milliseconds=\"{time}\"/>");
            }
            ("<", rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => {
                self.receive_response(rest)
            }
            ("<", method) => self.receive_request(method),
            (">", rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => {
                self.send_response(rest)
            }
            (">", method) => self.send_request(method),
            _ => panic!("no such step: {step}"),
        }
        self.index += 1;
    }

    fn receive_response(&mut self, rest: &str) {
        let status = &rest[..3];
        let attributes = match &rest[3..] {
            "?" => " optional=\"true\"",
            "!" => " auth=\"true\"",
            _ => "",
        };
        // SIPp keeps the first route set it is told to: that of the response that makes the dialog.
        let makes_dialog = !self.dialog && (status == "183" || status.starts_with('2'));
        let routes = if makes_dialog { " rrs=\"true\"" } else { "" };
        let _ = writeln!(
            self.xml,
            "<recv response=\"{status}\"{routes}{attributes}/>"
        );
        self.failed = status >= "300";
        let answered = status.starts_with('2') && self.invite_cseq == self.cseq;
        self.dialog |= answered || status == "183";
    }

    fn receive_request(&mut self, method: &str) {
        self.invite_last = method == "INVITE";
        let first = self.invite_last && !self.called;
        self.called |= first;
        self.tagless = first || method == "CANCEL" || !self.called;
        self.xml += &if first {
            FIRST_INVITE.to_owned()
        } else {
            format!("<recv request=\"{method}\"/>\n")
        };
    }

    fn send_response(&mut self, rest: &str) {
        let (status, invite) = rest
            .split_once(' ')
            .map_or((rest, false), |(status, _)| (status, true));
        let reason = reason(status);
        let tag = ";tag=[pid]callee[call_number]";
        let mut text = format!("SIP/2.0 {status} {reason}\n");
        if invite {
            let _ = writeln!(
                text,
                "[$via]\n[$from]\n[$to]{tag}\n[$cseq]\n[$route]\nCall-ID: [call_id]"
            );
        } else {
            let tag = if self.tagless { tag } else { "" };
            let _ = writeln!(
                text,
                "[last_Via:]\n[last_From:]\n[last_To:]{tag}\n[last_CSeq:]\n[last_Record-Route:]\n[last_Call-ID:]"
            );
        }
        match status {
            "183" => text += "Require: 100rel\nRSeq: 1\n",
            "302" => text += "Contact: <sip:[redirect_to]@[domain]>\n",
            _ => {}
        }
        if status != "302" {
            text += "Contact: <sip:[user]@[local_ip]:[local_port];transport=[transport]>\n";
        }
        text += if matches!(status, "200" | "183") {
            SDP
        } else {
            "Content-Length: 0\n\n"
        };
        // SIPp sends it again until the next message comes, which for an INVITE is the ACK.
        let final_to_invite = !status.starts_with('1') && (invite || self.invite_last);
        let again = if final_to_invite {
            " retrans=\"500\""
        } else {
            ""
        };
        let _ = writeln!(self.xml, "<send{again}><![CDATA[\n\n{text}\n]]></send>");
        self.dialog |= self.called;
    }

    fn send_request(&mut self, method: &str) {
        let (method, credentials) = match method.strip_suffix('+') {
            Some(method) => (method, "[authentication]\n"),
            None => (method, ""),
        };
        let text = match method {
            "ACK" if self.failed => self.ack_of_failure(),
            "CANCEL" => self.cancel(),
            "REGISTER" => self.register(credentials),
            _ if self.dialog && self.called => self.callee_request(method),
            _ if self.dialog => self.dialog_request(method),
            _ => self.first_request(method, credentials),
        };
        let again = if method == "ACK" {
            ""
        } else {
            " retrans=\"500\""
        };
        let _ = writeln!(self.xml, "<send{again}><![CDATA[\n\n{text}\n]]></send>");
    }

    fn first_request(&mut self, method: &str, credentials: &str) -> String {
        self.cseq += 1;
        self.mark_invite(method);
        let body = if method == "INVITE" {
            SDP
        } else {
            "Content-Length: 0\n\n"
        };
        format!(
            "{method} sip:[service]@[domain] SIP/2.0\n{VIA};branch=[branch]\n{FROM}\nTo: <sip:[service]@[domain]>\n\
             {}{credentials}Supported: 100rel\n{CONTACT}\n{body}",
            common(self.cseq, method)
        )
    }

    fn dialog_request(&mut self, method: &str) -> String {
        let ack = method == "ACK";
        if !ack {
            self.cseq += 1;
            self.mark_invite(method);
        }
        let cseq = if ack { self.invite_cseq } else { self.cseq };
        let rack = if method == "PRACK" {
            format!("RAck: 1 {} INVITE\n", self.invite_cseq)
        } else {
            String::new()
        };
        let body = if method == "INVITE" {
            SDP
        } else {
            "Content-Length: 0\n\n"
        };
        format!(
            "{method} [next_url] SIP/2.0\n{VIA};branch=[branch]\n{FROM}\n\
             To: <sip:[service]@[domain]>[peer_tag_param]\n[routes]\n{}{rack}{CONTACT}\n{body}",
            common(cseq, method)
        )
    }

    /// SIPp numbers all calls that come outside of its main scenario 0, so the branch is made from the caller's tag.
    fn callee_request(&mut self, method: &str) -> String {
        self.cseq += 1;
        format!(
            "{method} [next_url] SIP/2.0\n{VIA};branch=z9hG4bK[$caller_tag]-{}\nFrom:[$to_value];tag=[pid]callee[call_number]\n\
             To:[$from_value]\n[routes]\n{}{CONTACT}\nContent-Length: 0\n\n",
            self.index,
            common(self.cseq, method)
        )
    }

    /// ACK to a final response that is no 2xx: the INVITE's branch (RFC 3261 section 17.1.1.3).
    fn ack_of_failure(&self) -> String {
        format!(
            "ACK sip:[service]@[domain] SIP/2.0\n{VIA};branch=[branch-{}]\n{FROM}\n\
             To: <sip:[service]@[domain]>[peer_tag_param]\n{}Content-Length: 0\n\n",
            self.index - self.invite_at,
            common(self.invite_cseq, "ACK")
        )
    }

    /// CANCEL: the INVITE's branch and To (RFC 3261 section 9.1).
    fn cancel(&self) -> String {
        format!(
            "CANCEL sip:[service]@[domain] SIP/2.0\n{VIA};branch=[branch-{}]\n{FROM}\nTo: <sip:[service]@[domain]>\n\
             {}Content-Length: 0\n\n",
            self.index - self.invite_at,
            common(self.invite_cseq, "CANCEL")
        )
    }

    fn register(&mut self, credentials: &str) -> String {
        self.cseq += 1;
        format!(
            "REGISTER sip:[domain] SIP/2.0\n{VIA};branch=[branch]\n{FROM}\nTo: <sip:[user]@[domain]>\n\
             {}{credentials}Contact: <sip:[user]@[local_ip]:[local_port];transport=[transport]>[contact_params]\n\
             Expires: 600\nContent-Length: 0\n\n",
            common(self.cseq, "REGISTER")
        )
    }

    fn mark_invite(&mut self, method: &str) {
        if method == "INVITE" {
            (self.invite_at, self.invite_cseq) = (self.index, self.cseq);
        }
    }
}

fn common(cseq: u32, method: &str) -> String {
    format!("Call-ID: [call_id]\nCSeq: {cseq} {method}\nMax-Forwards: 70\n")
}

fn reason(status: &str) -> &'static str {
    match status {
        "180" => "Ringing",
        "183" => "Session Progress",
        "200" => "OK",
        "302" => "Moved Temporarily",
        "486" => "Busy Here",
        "487" => "Request Terminated",
        "603" => "Decline",
        _ => "As Told",
    }
}

/// The callee's first INVITE, with what later answers to it and the callee's own requests are made from.
/// `last_` would still be the message before in an action of the `<recv>` itself.
const FIRST_INVITE: &str = r#"<recv request="INVITE" rrs="true"><action>
<ereg regexp=".*" search_in="hdr" header="From:" assign_to="from_value"/>
<ereg regexp=".*" search_in="hdr" header="To:" assign_to="to_value"/>
<ereg regexp="tag=([^;]*)" search_in="hdr" header="From:" assign_to="caller_parameter,caller_tag"/>
</action></recv>
<nop><action>
<assignstr assign_to="via" value="[last_Via:]"/>
<assignstr assign_to="from" value="[last_From:]"/>
<assignstr assign_to="to" value="[last_To:]"/>
<assignstr assign_to="cseq" value="[last_CSeq:]"/>
<assignstr assign_to="route" value="[last_Record-Route:]"/>
</action></nop>
<Reference variables="via,from,to,cseq,route,from_value,to_value,caller_parameter,caller_tag"/>
"#;
const VIA: &str = "Via: SIP/2.0/[transport] [local_ip]:[local_port];rport";
const FROM: &str = "From: <sip:[user]@[domain]>;tag=[pid]caller[call_number]";
const CONTACT: &str = "Contact: <sip:[user]@[local_ip]:[local_port];transport=[transport]>";
const SDP: &str = "Content-Type: application/sdp\nContent-Length: [len]\n\nv=0\no=user 1 1 IN IP4 [local_ip]\ns=-\n\
                   c=IN IP4 [media_ip]\nt=0 0\nm=audio [media_port] RTP/AVP 0\na=rtpmap:0 PCMU/8000\n";

#[cfg(test)]
mod tests {
    use super::xml;

    #[test]
    fn the_ack_of_a_refusal_has_the_branch_of_its_invite() {
        let xml = xml("> INVITE | < 100? | < 486 | > ACK");
        let ack = &xml[xml.find("ACK sip:").expect("an ACK")..];
        assert!(ack.contains("branch=[branch-3]"), "{ack}");
        assert!(ack.contains("CSeq: 1 ACK"), "{ack}");
    }

    #[test]
    fn only_answers_to_requests_without_a_to_tag_add_one() {
        let xml =
            xml("< INVITE | > 183 | < PRACK | > 200 | < CANCEL | > 200 | > 487 INVITE | < ACK");
        let tagged: Vec<bool> = xml
            .split("<send")
            .skip(1)
            .map(|send| send.contains(";tag="))
            .collect();
        assert_eq!(tagged, [true, false, true, true]);
    }
}
