//! `rota devices`: lists the devices on which this program can train on this machine.

use std::io::{self, Write};

use learn::devices;

use super::NodeCommandError;
use crate::cli::Devices;

/// Prints all devices that Rota knows, and why those cannot be used that cannot.
pub(crate) fn run(options: &Devices) -> Result<(), NodeCommandError> {
    let all = devices();
    let mut out = io::stdout().lock();
    if options.json {
        return Ok(writeln!(out, "{:#}", serde_json::json!(all))?);
    }
    for device in &all {
        let name = device.name.to_string();
        match &device.why_not {
            None => {
                let slots = match device.slots {
                    1 => "one silo at a time".to_owned(),
                    slots => format!("{slots} silos at a time"),
                };
                writeln!(out, "{name:12} {}; {slots}", device.about)?;
            }
            Some(why) => writeln!(out, "{name:12} not available: {why}")?,
        }
    }
    Ok(())
}
