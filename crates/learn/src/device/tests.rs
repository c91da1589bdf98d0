#![allow(clippy::unwrap_used)]
use super::*;

/// Every device that this program can use on this machine. The suite of the learner runs on each.
pub(crate) fn every() -> Vec<Device> {
    let usable = devices().into_iter().filter(|device| device.available);
    let open = |device: ListedDevice| DeviceChoice {
        name: device.name,
        slots: None,
    };
    usable.map(|device| open(device).open().unwrap()).collect()
}

/// A device of every kind: one that has no place here does not compile.
fn of_every_kind() -> [DeviceName; 3] {
    let place = |name: DeviceName| match name {
        DeviceName::Cpu => 0,
        DeviceName::TchCpu => 1,
        DeviceName::TchCuda(_) => 2,
    };
    let all = [DeviceName::Cpu, DeviceName::TchCpu, DeviceName::TchCuda(0)];
    assert!(
        all.into_iter()
            .enumerate()
            .all(|(at, name)| place(name) == at)
    );
    all
}

#[test]
fn every_kind_of_device_is_listed_and_in_all_texts_of_names() {
    let page = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/devices.md"
    ));
    let page = page.unwrap();
    let schema = schemars::schema_for!(DeviceName).to_value().to_string();
    let listed = devices();
    for name in of_every_kind() {
        let text = name.to_string();
        let (head, _) = text.split_once(':').unwrap_or((&text, ""));
        assert!(name::NAMES.contains(&text), "{text}");
        assert!(schema.contains(head), "{text}: {schema}");
        assert!(listed.iter().any(|device| device.name == name), "{text}");
        assert!(
            page.contains(&format!("| `{text}`")),
            "{text}: docs/devices.md"
        );
    }
}

#[test]
fn names_are_written_as_they_are_read() {
    let all = of_every_kind().into_iter();
    for name in all.chain([DeviceName::TchCuda(13)]) {
        assert_eq!(name.to_string().parse(), Ok(name));
        let json = serde_json::to_string(&name).unwrap();
        assert_eq!(serde_json::from_str::<DeviceName>(&json).unwrap(), name);
    }
    for wrong in [
        "gpu",
        "wgpu",
        "tch-cuda",
        "tch-cuda:",
        "tch-cuda:x",
        "tch-cuda:70000",
        "tch-cuda:+1",
        "cpu:0",
        "CPU",
        "",
    ] {
        let error = wrong.parse::<DeviceName>().unwrap_err();
        assert_eq!(error, DeviceError::Unknown(wrong.into()));
        assert!(error.to_string().contains("tch-cuda:0"), "{error}");
    }
}

#[test]
fn the_processor_is_in_every_program_and_listed_first() {
    let all = devices();
    assert_eq!(all[0].name, DeviceName::Cpu);
    assert!(all[0].available);
    assert_eq!(every()[0].slots(), cores().get());
    for device in &all {
        assert_eq!(device.available, device.why_not.is_none());
    }
}

#[test]
fn a_device_that_cannot_be_used_is_refused_with_one_sentence() {
    let refused = |name| {
        let slots = None;
        DeviceChoice { name, slots }.open().unwrap_err().to_string()
    };
    let built = cfg!(feature = "tch");
    // No machine has that many.
    let why = refused(DeviceName::TchCuda(9_999));
    let expected = if built {
        "tch-cuda:9999 is not on this machine: LibTorch finds "
    } else {
        "tch-cuda:9999 is not in this program: build with --features tch (docs/devices.md)"
    };
    assert!(why.starts_with(expected), "{why}");
    if !built {
        assert_eq!(
            refused(DeviceName::TchCpu),
            "tch-cpu is not in this program: build with --features tch (docs/devices.md)"
        );
    }
}

#[test]
fn slots_are_as_many_as_were_asked_for() {
    let choice = DeviceChoice {
        name: DeviceName::Cpu,
        slots: NonZero::new(3),
    };
    assert_eq!(choice.open().unwrap().slots(), 3);
    assert_eq!(default_slots(DeviceName::TchCuda(0)).get(), 1);
}
