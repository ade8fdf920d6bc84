//! What an operation says, step by step. The driver looks after its transactions.

use net::Source;

use crate::{driver::Driver, message::Id, timers::Due};

/// The messages of one kind of operation.
///
/// An operation has at most two client transactions at a time ([`crate::operation::Lane`]), which the driver sends again, times out and
/// counts; what they lead to is decided here. Each operation ends with one call of [`Driver::end`].
pub(crate) trait Scenario: Send {
    /// Sends the first request of an operation.
    fn begin(&mut self, driver: &mut Driver, slot: u32);

    /// A provisional response to one of the operation's transactions.
    fn provisional(&mut self, driver: &mut Driver, id: Id, code: u16, message: &[u8]) {
        let _ = (driver, id, code, message);
    }

    /// A final response to one of the operation's transactions.
    fn answered(&mut self, driver: &mut Driver, id: Id, code: u16, message: &[u8]);

    /// A final response again, or to a transaction that the operation has left behind.
    fn answered_again(&mut self, driver: &mut Driver, id: Id, code: u16, message: &[u8]) {
        let _ = (driver, id, code, message);
    }

    /// A request whose Call-ID is one of the operation's.
    fn request(&mut self, driver: &mut Driver, id: Id, from: &Source, message: &[u8]) {
        let _ = id;
        crate::uas::refuse(driver, from, message);
    }

    /// Something that the scenario armed is due.
    fn due(&mut self, driver: &mut Driver, id: Id, due: Due) {
        let _ = (driver, id, due);
    }

    /// No other operation begins: those that would last long, calls above all, come to their end soon.
    fn finish(&mut self, driver: &mut Driver) {
        let _ = driver;
    }
}
