//! The price of secure-aggregation rounds beside that of clear ones, as a table in Markdown:
//!
//!     cargo run --release -p lab --example price
//!     cargo run --release -p lab --example price -- 10 1000000
//!
//! With numbers, of federations of so many members with so many parameters alone. Every federation runs
//! twice over the simulated network, once with models in clear and once masked, each in a process of its
//! own, so that its peak of memory is its own. Every member signs and checks everything itself, as nodes do.
//! Nothing is trained, so what is measured is the protocol with its mathematics. Needs Linux: CPU time and
//! memory are read from `/proc`.

use std::error::Error;
use std::fs;
use std::process::Command;

use node::institution::cpu_seconds;
use serde::{Deserialize, Serialize};
use simulations::pool::Threads;
use simulations::{Federation, Options, Scenario, Signatures, federate};

/// Members of a federation.
const MEMBERS: [u64; 3] = [4, 10, 100];
/// Parameters of the model.
const PARAMETERS: [u64; 3] = [14, 10_000, 1_000_000];
/// Parameters from which on models are large beside everything else in memory.
const LARGE: u64 = 100_000;
/// The argument by which this program starts itself for one federation.
const ONE: &str = "--one";

/// Cost of one federation, in all its rounds and members.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Price {
    /// CPU time in seconds.
    cpu: f64,
    /// Bytes that members sent to each other.
    bytes: u64,
    /// The most memory of the process in bytes, with all members in it.
    peak: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [ONE, members, parameters, mode] => {
            let price = one(
                members.parse()?,
                parameters.parse()?,
                mode == "secure-aggregation",
            )?;
            println!("{}", serde_json::to_string(&price)?);
            Ok(())
        }
        [] => table(&MEMBERS, &PARAMETERS),
        [members] => table(&[number(members)?], &PARAMETERS),
        [members, parameters] => table(&[number(members)?], &[number(parameters)?]),
        _ => Err("expected nothing, MEMBERS, or MEMBERS PARAMETERS".into()),
    }
}

fn number(text: &str) -> Result<u64, Box<dyn Error>> {
    Ok(text.replace('_', "").parse()?)
}

/// Prints a line for every size, as soon as it is measured.
fn table(members: &[u64], parameters: &[u64]) -> Result<(), Box<dyn Error>> {
    println!(
        "| members | parameters | CPU ms, clear | masked | more | kB sent, clear | masked | more | peak MiB, clear | \
         masked | more, in models |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for &members in members {
        for &parameters in parameters {
            let clear = measured(members, parameters, "clear");
            let masked = measured(members, parameters, "secure-aggregation");
            println!("{}", line(members, parameters, &clear, &masked));
        }
    }
    println!(
        "\nCPU time and bytes are those of one member and round, means over 1 to 100 rounds; memory is that of the \
         whole process with all members, and its last column the difference for each member, in models of 4 \
         bytes a parameter, where models are large."
    );
    Ok(())
}

/// Rounds of a federation: as many as it takes to see CPU time, which the system counts in hundredths of a
/// second.
fn rounds(members: u64, parameters: u64) -> u64 {
    if parameters > LARGE {
        // A hundred members are many already.
        if members > 50 { 1 } else { 3 }
    } else {
        (400 / members).clamp(3, 100)
    }
}

/// A federation in a process of its own; an error says why there is no price.
fn measured(members: u64, parameters: u64, mode: &str) -> Result<Price, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let arguments = [ONE, &members.to_string(), &parameters.to_string(), mode];
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().next_back().unwrap_or_default().to_owned();
        return Err(format!("{mode} ended with {}: {said}", output.status));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

fn line(
    members: u64,
    parameters: u64,
    clear: &Result<Price, String>,
    masked: &Result<Price, String>,
) -> String {
    let (clear, masked) = match (clear, masked) {
        (Ok(clear), Ok(masked)) => (clear, masked),
        (Err(why), _) | (_, Err(why)) => {
            return format!("| {members} | {parameters} | {why} | | | | | | | | |");
        }
    };
    let parts = (members * rounds(members, parameters)) as f64;
    let cpu = |price: &Price| 1e3 * price.cpu / parts;
    let sent = |price: &Price| price.bytes as f64 / parts / 1e3;
    let peak = |price: &Price| price.peak as f64 / f64::from(1 << 20);
    let models = (masked.peak as f64 - clear.peak as f64) / (4 * members * parameters) as f64;
    let models = match parameters {
        large if large > LARGE => format!("{models:.2}"),
        _ => String::new(),
    };
    format!(
        "| {members} | {parameters} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.0} | {:.0} | {models} |",
        cpu(clear),
        cpu(masked),
        cpu(masked) - cpu(clear),
        sent(clear),
        sent(masked),
        sent(masked) - sent(clear),
        peak(clear),
        peak(masked),
    )
}

/// Runs one federation in this process.
fn one(members: u64, parameters: u64, masked: bool) -> Result<Price, Box<dyn Error>> {
    let rounds = rounds(members, parameters);
    let privacy = if masked {
        "[privacy]\nmode = \"secure-aggregation\""
    } else {
        ""
    };
    // All are in one process, so the bandwidth is that of memory. Over slow lines a view ends before the models
    // of a hundred members are there, and in the next view they all mask their models again.
    let text = format!(
        "name = \"price\"
        rounds = {rounds}
        silos = {members}
        task = {{ constant = {{ parameters = {parameters} }} }}
        {privacy}
        [strategy]
        name = \"fedavg\"
        weight = \"equal\"
        training = {{ epochs = 1, batch = 0, optimiser = {{ name = \"sgd\", rate = 0.1 }} }}
        [protocol]
        keep-rounds = 1
        [network]
        bandwidth-mbit = 1_000_000"
    );
    let scenario = Scenario::parse("price.toml", &text)?;
    let study = scenario.study(None)?;
    let federation = Federation::of(&scenario, &study)?;
    let mut options = Options {
        signatures: Signatures::Ed25519,
        references: false,
        ..Options::default()
    };
    let threads = Threads::new(options.threads);
    let before = cpu()?;
    let recorded = federate(&scenario, &federation, &[], &mut options, &threads)?;
    let cpu = cpu()? - before;
    if recorded.rounds.len() as u64 != rounds {
        return Err(format!("{} final rounds, expected {rounds}", recorded.rounds.len()).into());
    }
    let protocol = recorded.protocol.ok_or("there were no messages")?;
    let sent = protocol.traffic.iter();
    Ok(Price {
        cpu,
        bytes: sent.map(|sent| sent.messages + sent.blobs).sum(),
        peak: peak()?,
    })
}

/// The CPU time of this process so far, in seconds.
fn cpu() -> Result<f64, Box<dyn Error>> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    Ok(cpu_seconds(&stat).ok_or("no CPU time in /proc/self/stat")?)
}

/// The most memory of this process so far, in bytes.
fn peak() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB"));
    let kilobytes = kilobytes.ok_or("no VmHWM in /proc/self/status")?;
    Ok(1024 * kilobytes.trim().parse::<u64>()?)
}
