//! Sentences about programs that do not speak the same message formats.

use mesh::Program;
use protocol::{Epoch, Formats};

use crate::institution::error::NodeError;

/// Returns the reason for which this node's program and a member's do not understand each other, and what to do: the
/// same at both, seen from the other side. `None` if they do.
pub fn other_format(name: &str, theirs: &Program, ours: &Program) -> Option<String> {
    let lacks = |one: &Program, other: &Program| {
        let needed = other.in_force?;
        (!one.formats.contains(needed)).then_some(needed)
    };
    let (here, there) = (
        format!("this node runs Rota {}", ours.version),
        format!("{name} runs Rota {}", theirs.version),
    );
    if let Some(needed) = lacks(theirs, ours) {
        return Some(format!(
            "{there}, which speaks message {}, and the agreement in force needs format {needed}: until \
             {name} runs a version that speaks it, it takes no part ({here})",
            theirs.formats
        ));
    }
    let needed = lacks(ours, theirs)?;
    Some(format!(
        "{here}, which speaks message {}, and the agreement in force at {name} needs format {needed}: \
         until this node runs a version that speaks it, it takes no part ({there})",
        ours.formats
    ))
}

/// Refuses an agreement in force whose format this program does not speak.
///
/// # Errors
/// [`NodeError::Format`].
pub(in crate::institution) fn check(epoch: &Epoch) -> Result<(), NodeError> {
    if Formats::SPOKEN.contains(epoch.format) {
        Ok(())
    } else {
        Err(NodeError::Format {
            needed: epoch.format,
            change: epoch.number,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_state_their_versions_and_who_has_to_update() {
        let program = |version: &str, newest, in_force| Program {
            version: version.into(),
            formats: Formats { oldest: 1, newest },
            in_force: Some(in_force),
        };
        let (old, new) = (program("0.1.0", 1, 1), program("0.2.0", 2, 2));
        assert_eq!(
            other_format("east", &old, &new).as_deref(),
            Some(
                "east runs Rota 0.1.0, which speaks message format 1, and the agreement in force needs \
                 format 2: until east runs a version that speaks it, it takes no part (this node runs \
                 Rota 0.2.0)"
            )
        );
        assert_eq!(
            other_format("north", &new, &old).as_deref(),
            Some(
                "this node runs Rota 0.1.0, which speaks message format 1, and the agreement in force \
                 at north needs format 2: until this node runs a version that speaks it, it takes no \
                 part (north runs Rota 0.2.0)"
            )
        );
        assert_eq!(other_format("north", &program("0.2.0", 2, 1), &old), None);
    }

    #[test]
    fn a_format_unknown_to_this_program_is_named_with_a_remedy() {
        let example =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/federation.toml");
        let example = agreement::Agreement::load(&example).expect("the example can be read");
        let mut epoch = (*example.epoch).clone();
        assert!(check(&epoch).is_ok());
        epoch.format = 9;
        epoch.number = 2;
        let why = check(&epoch).map_err(|error| error.to_string());
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            why,
            Err(format!(
                "since change 2 of the agreement the federation uses message format 9; this program, \
                 Rota {version}, speaks {}: install a version that speaks format 9 and start it \
                 again with the same state folder; nothing is lost",
                Formats::SPOKEN
            ))
        );
    }
}
