//! Messages without a signature of their sender: what they hold proves them.

use super::*;
use crate::frame::HEADER;

#[test]
fn a_message_that_proves_itself_names_no_sender_and_has_no_signature() {
    let epoch = epoch("a");
    let bytes = sign_certificate(&epoch, &certificate(&epoch, &[0, 2, 3]));
    assert!(read(&epoch, &bytes).is_ok());
    // The sender, and the first byte of the signature.
    for at in [HEADER - 3, HEADER] {
        let mut other = bytes.to_vec();
        other[at] = 1;
        if at < HEADER {
            other[at + 1] = 0;
        }
        assert_eq!(read(&epoch, &other), Err(OpenError::Mislabelled));
    }
}
