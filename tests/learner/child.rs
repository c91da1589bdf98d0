//! A small learner that speaks the protocol on its standard input and output: the model is a line
//! `y = weight·x + bias`, fitted by gradient descent. By its first argument it misbehaves.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};

use serde_json::{Value, json};

/// The digest of the frozen tensors of a child that has some.
pub(crate) const FROZEN: &str = "5f78c33274e43fa9de5659265c1d917e25c03722dcb0b8d27db8d5feaa813953";

/// A file of tensors: name, shape, values.
type Tensors = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

pub(crate) fn read(path: &str) -> Tensors {
    let bytes = fs::read(path).unwrap();
    let head = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&bytes[8..8 + head]).unwrap();
    let data = &bytes[8 + head..];
    let tensor = |info: &Value| {
        let number = |value: &Value| value.as_u64().unwrap() as usize;
        let shape = info["shape"].as_array().unwrap().iter().map(number);
        let span = &info["data_offsets"];
        let data = &data[number(&span[0])..number(&span[1])];
        let four = data.chunks_exact(4);
        let values = four.map(|four| f32::from_le_bytes(four.try_into().unwrap()));
        (shape.collect(), values.collect())
    };
    let header = header.as_object().unwrap().iter();
    header
        .filter(|(name, _)| *name != "__metadata__")
        .map(|(name, info)| (name.clone(), tensor(info)))
        .collect()
}

/// Writes the tensors in descending order of names, which is not the canonical one.
pub(crate) fn write(path: &str, tensors: &[(&str, Vec<usize>, Vec<f32>)]) {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, shape, values) in tensors.iter().rev() {
        let from = data.len();
        data.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        let info = json!({ "dtype": "F32", "shape": shape, "data_offsets": [from, data.len()] });
        header.insert((*name).to_owned(), info);
    }
    let header = serde_json::to_vec(&header).unwrap();
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header);
    bytes.extend(data);
    fs::write(path, bytes).unwrap();
}

/// The silo's rows: y = 2x + its number, twelve to train and four to test.
fn rows(silo: u64, split: &str) -> Vec<(f32, f32)> {
    let range = if split == "train" { 0..12 } else { 12..16 };
    let x = |row: u64| row as f32 / 8.0 - 1.0;
    range
        .map(|row| (x(row), 2.0 * x(row) + silo as f32))
        .collect()
}

/// The rows that the silo hands over: one feature each.
fn given(file: &str, split: &str) -> Vec<(f32, f32)> {
    let file = read(file);
    let (x, y) = (&file[&format!("{split}.x")], &file[&format!("{split}.y")]);
    x.1.iter().copied().zip(y.1.iter().copied()).collect()
}

/// Duration of a slow training.
const TRAINING: std::time::Duration = std::time::Duration::from_millis(300);

fn loss(rows: &[(f32, f32)], weight: f32, bias: f32) -> f64 {
    let square = |&(x, y): &(f32, f32)| f64::from(weight * x + bias - y).powi(2);
    rows.iter().map(square).sum::<f64>() / rows.len() as f64
}

fn say(answer: &Value) {
    let json = serde_json::to_vec(answer).unwrap();
    let mut out = std::io::stdout().lock();
    out.write_all(&(json.len() as u32).to_le_bytes()).unwrap();
    out.write_all(&json).unwrap();
    out.flush().unwrap();
}

/// The next request; `None` at the end of the input.
fn hear() -> Option<Value> {
    let mut len = [0; 4];
    std::io::stdin().lock().read_exact(&mut len).ok()?;
    let mut json = vec![0; u32::from_le_bytes(len) as usize];
    std::io::stdin().lock().read_exact(&mut json).unwrap();
    Some(serde_json::from_slice(&json).unwrap())
}

/// Speaks the protocol until the input ends. `how` is one of "well", "crash", "hang", "nan",
/// "layout", "babble", "refuse", "progress", "left", "escaped", "daemon", "flood", "pipe", "redrawn", "quiet",
/// "held", "none"; it misbehaves in
/// its second training, and notes in `log` when it is started and how often it has trained, over all
/// starts. With "frozen" it has frozen tensors, with "apart" others at every silo and with "apart-1" those
/// of silo 1. With "empty" silo 1 has nothing to train on, and with "off" its
/// weight is a little larger than what it was given. With "own" it gives a model to start from, another
/// at every silo, and computes made-up batches; with "swapped" as well, and at other silos than the
/// first it takes weight and bias for each other, and with "wide" its batches are wider there. With
/// "columns" the columns of its rows have names, in another order at silo 1, and with "mended" in the
/// agreed order where one is agreed. With "graded" it measures a grade besides. After "slow-" a training that goes well takes [`TRAINING`].
pub(crate) fn main(how: &str, log: &str) {
    let (slow, how) = match how.strip_prefix("slow-") {
        Some(how) => (true, how),
        None => (false, how),
    };
    let noted = || fs::read_to_string(log).unwrap_or_default();
    let note = |what: &str| {
        let file = fs::OpenOptions::new().create(true).append(true).open(log);
        writeln!(file.unwrap(), "{what}").unwrap();
    };
    note("started");
    let starts = noted().matches("started").count();
    // Locked as long as this process, or one that it starts, lives.
    let alive = fs::File::create(format!("{log}.alive")).unwrap();
    alive.try_lock_shared().unwrap();
    while let Some(request) = hear() {
        let silo = request["silo"].as_u64().unwrap_or(0);
        let text = |key: &str| request[key].as_str().unwrap().to_owned();
        let line = |key: &str| {
            let tensors = read(&text(key));
            (tensors["weight"].1[0], tensors["bias"].1[0])
        };
        match request["type"].as_str().unwrap() {
            "try" => {
                let (weight, bias) = line("model");
                let (weight, bias) = match (how, silo) {
                    ("swapped", 1..) => (bias, weight),
                    _ => (weight, bias),
                };
                let width = if how == "wide" && silo > 0 { 3.0 } else { 1.0 };
                write(
                    &text("into"),
                    &[
                        ("inputs", vec![2], vec![2.0, width]),
                        ("outputs", vec![2], vec![2.0 * weight + bias, bias - weight]),
                    ],
                );
                say(&json!({ "type": "done" }));
            }
            "hello" => say(&json!({ "type": "hello", "protocol": 1, "name": "a line" })),
            "open" => {
                let given = request["rows"].is_object();
                let gives = matches!(how, "own" | "swapped" | "wide" | "columns" | "mended");
                let agreed = request.get("columns").cloned();
                let columns = match (how, silo, agreed) {
                    ("mended", _, Some(agreed)) => agreed,
                    ("columns" | "mended", 1, _) => json!(["weight", "height"]),
                    ("columns" | "mended", _, _) => json!(["height", "weight"]),
                    _ => json!([]),
                };
                let personal = json!([{ "name": "trainings", "shape": [1], "role": "buffer" }]);
                say(&json!({
                    "type": "opened",
                    "layout": [
                        {
                            "name": "weight", "shape": [1, 1], "role": "weight",
                            "initial": { "uniform": if how == "redrawn" { starts as f64 } else { 0.5 } },
                        },
                        { "name": "bias", "shape": [1], "role": "bias" },
                    ],
                    "personal": personal,
                    "rows": { "train": if how == "empty" && silo == 1 { 0 } else { 12 }, "test": 4 },
                    "capabilities": if gives {
                        json!(["gradients", "initial", "try"])
                    } else {
                        json!(["gradients"])
                    },
                    "columns": columns,
                    "held": match how {
                        "apart" => json!({ "body": "0", "mask": format!("{silo}") }),
                        "apart-1" => json!({ "body": "0", "mask": "1" }),
                        _ => json!({}),
                    },
                    "outputs": if given { Value::Null } else { json!("squared") },
                    "frozen": match how {
                        "frozen" => json!(FROZEN),
                        "apart" => json!(format!("{silo:064}")),
                        "apart-1" => json!(format!("{:064}", 1)),
                        _ => Value::Null,
                    },
                }));
            }
            "initial" => {
                if let Some(into) = request["personal_into"].as_str() {
                    write(into, &[("trainings", vec![1], vec![0.0])]);
                }
                let first = match how {
                    "own" | "swapped" | "wide" | "columns" | "mended" => 7.0 + silo as f32,
                    _ => 7.0,
                };
                if let Some(into) = request["into"].as_str() {
                    write(
                        into,
                        &[
                            ("bias", vec![1], vec![first]),
                            ("weight", vec![1, 1], vec![0.0]),
                        ],
                    );
                }
                say(&json!({ "type": "done" }));
            }
            "train" => {
                note("trained");
                if slow && (how == "well" || silo != 1) {
                    std::thread::park_timeout(TRAINING);
                }
                match how {
                    // It says nothing until the silo stops it.
                    "quiet" => {
                        eprintln!("quiet from here");
                        while !matches!(hear(), Some(stop) if stop["type"] == "stop") {}
                        say(&json!({ "type": "stopped" }));
                        continue;
                    }
                    // One silo of several can never train, or takes longer than the others wait.
                    "unable" if silo == 1 => {
                        eprintln!("MemoryError: out of memory, as a test");
                        std::process::exit(3);
                    }
                    "late" if silo == 1 => {
                        while !matches!(hear(), Some(stop) if stop["type"] == "stop") {}
                        say(&json!({ "type": "stopped" }));
                        continue;
                    }
                    // Nor is it stopped.
                    "held" => loop {
                        std::thread::park();
                    },
                    _ => {}
                }
                let trainings = noted().matches("trained").count();
                let second = trainings == 2;
                let (mut weight, mut bias) = line("start");
                let rate = request["training"]["optimiser"]["rate"].as_f64().unwrap() as f32;
                let rows = match request["rows"].as_str() {
                    None => rows(silo, "train"),
                    Some(file) => given(file, "train"),
                };
                let (mu, anchor) = if request["modifier"].is_object() {
                    let anchor = request["modifier"]["anchor"].as_str().unwrap();
                    let anchor = read(anchor);
                    let mu = request["modifier"]["mu"].as_f64().unwrap() as f32;
                    (mu, (anchor["weight"].1[0], anchor["bias"].1[0]))
                } else {
                    (0.0, (0.0, 0.0))
                };
                for step in 0..20 {
                    let slope = |of: &dyn Fn(f32) -> f32| {
                        let each = rows
                            .iter()
                            .map(|&(x, y)| 2.0 * (weight * x + bias - y) * of(x));
                        each.sum::<f32>() / rows.len() as f32
                    };
                    let slopes = (slope(&|x| x), slope(&|_| 1.0));
                    weight -= rate * (slopes.0 + mu * (weight - anchor.0));
                    bias -= rate * (slopes.1 + mu * (bias - anchor.1));
                    let progress = json!({
                        "type": "progress", "step": step + 1, "steps": 20,
                        "loss": loss(&rows, weight, bias),
                    });
                    say(&progress);
                    match how {
                        "crash" | "redrawn" if second && step == 3 => {
                            eprintln!("MemoryError: out of memory, as a test");
                            std::process::exit(3);
                        }
                        "left" if second && step == 3 => {
                            // It holds standard output, standard error and the lock.
                            let worker = std::process::Command::new("sleep")
                                .arg("60")
                                .stdin(alive.try_clone().unwrap())
                                .spawn();
                            worker.unwrap();
                            eprintln!("RuntimeError: a worker is left, as a test");
                            std::process::exit(4);
                        }
                        "escaped" | "daemon" if second && step == 3 => {
                            // Out of the group, and with "daemon" of no parent; it holds the lock.
                            use std::os::unix::process::CommandExt;
                            let words = match how {
                                "escaped" => "exec 3<&0; exec sleep 60",
                                _ => "exec 3<&0; sleep 60 </dev/null >/dev/null 2>&1 & exit 0",
                            };
                            let mut shell = std::process::Command::new("sh");
                            shell.args(["-c", words]).stdin(alive.try_clone().unwrap());
                            let mut shell = shell.process_group(0).spawn().unwrap();
                            if how == "daemon" {
                                assert!(shell.wait().unwrap().success());
                            }
                            eprintln!("RuntimeError: a worker is elsewhere, as a test");
                            std::process::exit(5);
                        }
                        "flood" if second && step == 3 => {
                            let line = [&[b'x'; 4_000][..], b"\n"].concat();
                            let block = line.repeat(50);
                            let mut error = std::io::stderr().lock();
                            for _ in 0..200 {
                                error.write_all(&block).unwrap();
                            }
                            drop(error);
                            eprintln!("the flood is over");
                        }
                        "hang" if second && step == 3 => loop {
                            std::thread::park();
                        },
                        "progress" => {
                            // Until the silo stops it.
                            while !matches!(hear(), Some(stop) if stop["type"] == "stop") {}
                            break;
                        }
                        _ => {}
                    }
                }
                match how {
                    "progress" => {
                        say(&json!({ "type": "stopped" }));
                        continue;
                    }
                    "nan" if second => weight = f32::NAN,
                    "babble" if second => println!("Epoch 1: all well"),
                    "refuse" if second => {
                        say(&json!({ "type": "failed", "why": "the ward is closed today" }));
                        continue;
                    }
                    _ => {}
                }
                let bias = ("bias", vec![1], vec![bias]);
                match how {
                    "pipe" if second => {
                        let made = std::process::Command::new("mkfifo")
                            .arg(text("into"))
                            .status();
                        assert!(made.unwrap().success());
                    }
                    "layout" if second => {
                        let weight = ("weight", vec![2], vec![weight, weight]);
                        write(&text("into"), &[bias, weight]);
                    }
                    _ => write(&text("into"), &[bias, ("weight", vec![1, 1], vec![weight])]),
                }
                let own = read(&text("personal"))["trainings"].1[0] + 1.0;
                write(&text("personal_into"), &[("trainings", vec![1], vec![own])]);
                let metrics = json!({ "loss": 0.0, "trainings": own });
                let samples = if how == "none" && second { 0 } else { 12 };
                say(&json!({ "type": "trained", "samples": samples, "metrics": metrics }));
            }
            "evaluate" => {
                let (mut weight, bias) = line("model");
                if how == "off" {
                    weight *= 1.05;
                }
                let split = request["split"].as_str().unwrap();
                let rows = match request["rows"].as_str() {
                    None => rows(silo, split),
                    Some(file) => given(file, split),
                };
                let mut metrics = json!({ "loss": loss(&rows, weight, bias) });
                if how == "graded" {
                    metrics["grade"] = json!(0.75);
                }
                say(&json!({ "type": "measured", "samples": rows.len(), "metrics": metrics }));
            }
            "outputs" => {
                let (weight, bias) = line("model");
                let rows = rows(silo, request["split"].as_str().unwrap());
                let outputs = rows.iter().map(|(x, _)| weight * x + bias).collect();
                let targets = rows.iter().map(|(_, y)| *y).collect();
                let shape = vec![rows.len(), 1];
                write(
                    &text("into"),
                    &[
                        ("outputs", shape.clone(), outputs),
                        ("targets", shape, targets),
                    ],
                );
                say(&json!({ "type": "done" }));
            }
            other => panic!("a request of another kind: {other}"),
        }
    }
}
