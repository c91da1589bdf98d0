//! Predictions for rows of a file, and models in files.

use crate::of_task::TaskStudy;
use methods::learner::Split;

use super::*;
use crate::data::{Format, SplitConfig};
use crate::schema::LocalNames;

#[test]
fn a_predictor_gives_the_bits_of_the_learner() {
    // The built-in patients, whose rows are known: the raw rows that were held out.
    for (model, standardise) in [
        ("{ linear = { loss = 'squared' } }", "federation"),
        ("{ linear = { loss = 'absolute' } }", "silo"),
        ("{ mlp = { hidden = [5] } }", "federation"),
        ("{ mlp = { hidden = [5] } }", "none"),
    ] {
        let text = format!("data = 'diabetes'\nmodel = {model}\nstandardise = '{standardise}'");
        let task: TableTask = toml::from_str(&text).unwrap();
        let config = TaskConfig::Table(Box::new(task.clone()));
        let study = config.study(Some(1), None, 7).unwrap();
        let silo = &study.silos[0];
        let initial = silo.learner.initial(1);
        let layout = initial.layout().clone();
        let params = Params::build(&layout, |into| {
            for (at, (value, start)) in into.iter_mut().zip(initial.values()).enumerate() {
                *value = start + 0.01 * at as f32;
            }
        });
        let card = Card::new(CardParts {
            task: &task,
            preparation: silo.preparation.as_ref().unwrap(),
            model: &params,
            origin: origin(),
            created: String::new(),
        });
        let predictor = Predictor::new(card.unwrap(), &params).unwrap();
        let set = task.tables(Some(1), None, 0).unwrap();
        let (name, table) = &set.silos[0];
        let held_out = SplitConfig::default()
            .divide(&vec![0; table.len()], 7, name)
            .unwrap()
            .test;
        let rows: Vec<Vec<f64>> = held_out
            .iter()
            .map(|&row| table.row(row).to_vec())
            .collect();
        let predicted = predictor.predict(&rows);
        let errors = predicted.iter().zip(&held_out);
        let errors = errors.map(|(own, &row)| (own[0] - table.targets(row)[0]).abs());
        let mae = errors.sum::<f64>() / rows.len() as f64;
        let measured = silo
            .learner
            .evaluate(&params, &Params::empty(), Split::Test)
            .unwrap();
        let known = measured.values["mae"];
        assert!(
            (mae - known).abs() < 1e-4 * known,
            "{model}: {mae} and {known}"
        );
        // On one scale, the outputs are those of the learner to the last bit.
        let outputs = silo.learner.outputs().unwrap();
        let outputs = outputs
            .outputs(&params, &Params::empty(), Split::Test)
            .unwrap();
        let Output::Numbers {
            mean, deviation, ..
        } = predictor.card().output
        else {
            panic!("numbers");
        };
        let expected: Vec<f64> = outputs
            .iter()
            .map(|value| value * deviation + mean)
            .collect();
        assert_eq!(predicted.concat(), expected, "{model}");
    }
}

/// Returns what is said about a file of rows, by a model of the clinic.
fn answer(text: &str, names: &str, keep: &[&str]) -> Result<Predicted, String> {
    answer_by(CLINIC, text, names, keep, BadRows::Refuse)
}

/// Returns what is said about a file of rows, by a model of this schema, where bad rows are refused or skipped.
fn answer_by(
    schema: &str,
    text: &str,
    names: &str,
    keep: &[&str],
    bad: BadRows,
) -> Result<Predicted, String> {
    let task = task(schema, "\"logistic\"", "silo");
    let (card, model) = card(&task, 2);
    let predictor = Predictor::new(card, &model).unwrap();
    let folder = folder("rows");
    let thread = format!("{:?}.csv", std::thread::current().id());
    let path = folder.join(thread);
    std::fs::write(&path, text).unwrap();
    let names: LocalNames = toml::from_str(names).unwrap();
    let keep: Vec<String> = keep.iter().map(|&name| name.to_owned()).collect();
    let rows = predictor.read(&path, &Format::default(), &names, &keep, bad);
    let rows = rows.map_err(|error| error.to_string())?;
    Ok(predictor.answer(&rows, None))
}

#[test]
fn every_row_has_a_line_and_a_reason_if_nothing_is_predicted() {
    let text = "ward,patient,weight,pulse,age\n\
        general,a,70,80,60\n\
        intensive,b,,80,60\n\
        ,c,70,NA,60\n\
        general,d,70,80,17\n";
    let found = answer(text, "", &["patient"]).unwrap();
    assert_eq!(
        found.header,
        [
            "patient",
            "predicted_outcome",
            "probability_home",
            "probability_died",
            "note"
        ]
    );
    let patients: Vec<&str> = found.rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!((patients, found.without), (vec!["a", "b", "c", "d"], 2));
    for (row, why) in [
        (1, "weight is missing: the schema leaves such rows out"),
        (3, "the schema is for rows with age >= 18"),
    ] {
        assert_eq!(found.rows[row][1..], ["", "", "", why]);
    }
    for row in [0, 2] {
        let [_, label, home, died, note] = &found.rows[row][..] else {
            panic!("five cells");
        };
        let (home, died): (f32, f32) = (home.parse().unwrap(), died.parse().unwrap());
        assert!((home + died - 1.0).abs() < 1e-6 && note.is_empty());
        assert_eq!(label, if died > home { "died" } else { "home" });
    }
    let mut written = Vec::new();
    found.write(&mut written).unwrap();
    let written = String::from_utf8(written).unwrap();
    assert_eq!(written.lines().count(), 5, "{written}");
}

/// A task with a stamp in milliseconds since 1970, and a target with an offset, and its model, which predicts
/// the seconds of the stamp's minute.
pub(super) fn minute(standardise: &str) -> (Card, Params) {
    let schema = "target = { name = \"days\", unit = \"d\" }\n[[feature]]\nname = \"stamp\"\n";
    let task = task(schema, "{ linear = { loss = \"squared\" } }", standardise);
    let (mean, deviation) = (1.7e12 + 30_000.0, 17_000.0);
    let target = (1e9 + 30.0, 17.0);
    let mut preparation = Preparation::none(1);
    if standardise == "silo" {
        (preparation.means, preparation.deviations) = (vec![mean], vec![deviation]);
        (preparation.target_mean, preparation.target_deviation) = target;
    }
    let names = ["north".to_owned()];
    let study = task.stand_ins(&names, 1).unwrap();
    let initial = study.silos[0].learner.initial(1);
    let layout = initial.layout().clone();
    let model = Params::build(&layout, |into| {
        into.copy_from_slice(initial.values());
        let mut put = |name: &str, values: &[f32]| {
            let at = layout.position(name).map(|at| layout.range(at));
            at.into_iter()
                .for_each(|at| into[at].copy_from_slice(values));
        };
        let means = [mean, target.0].map(methods::strategy::split_double);
        put("weight", &[1.0]);
        put("bias", &[0.0]);
        put("scale.mean", &means.map(|(high, _)| high));
        put("scale.rest", &means.map(|(_, rest)| rest));
        put("scale.deviation", &[deviation as f32, target.1 as f32]);
    });
    let card = Card::new(CardParts {
        task: &task,
        preparation: &preparation,
        model: &model,
        origin: origin(),
        created: String::new(),
    });
    (card.unwrap(), model)
}

#[test]
fn numbers_far_from_zero_are_predicted_with_their_digits() {
    for standardise in ["federation", "silo"] {
        let (card, model) = minute(standardise);
        let predictor = Predictor::new(card.clone(), &model).unwrap();
        let rows: Vec<Vec<f64>> = [1.0, 30.0, 59.0]
            .map(|second| vec![1.7e12 + 1e3 * second])
            .to_vec();
        for (predicted, second) in predictor
            .predict(&rows)
            .concat()
            .iter()
            .zip([1.0, 30.0, 59.0])
        {
            assert!((predicted - 1e9 - second).abs() < 1e-4, "{predicted}");
        }
        let path = folder("minute").join(format!("{standardise}.csv"));
        std::fs::write(&path, "stamp\n1700000001000\n").unwrap();
        let read = predictor.read(
            &path,
            &Format::default(),
            &LocalNames::default(),
            &[],
            BadRows::Refuse,
        );
        let answer = predictor.answer(&read.unwrap(), None);
        assert_eq!(answer.rows[0][0], "1000000001.00000");
        // A file of before there was a rest is read with a mean of single precision.
        let old = model.layout().select(|tensor| tensor.name != "scale.rest");
        let old = Params::gather(&old, &[&model]).unwrap();
        Predictor::new(card, &old).unwrap();
    }
}

#[test]
fn local_names_and_codes_are_translated_and_targets_allowed() {
    let plain = "age,pulse,weight,ward\n60,80,70,intensive\n";
    let local = "Alter;x,pulse,weight,Station,outcome\n60,80,70,ITS,died\n".replace(';', "");
    let names =
        "columns = { age = 'Alterx', ward = 'Station' }\ncodes = { ward = { ITS = 'intensive' } }";
    assert_eq!(
        answer(&local, names, &[]).unwrap().rows,
        answer(plain, "", &[]).unwrap().rows
    );
    // A column that only the learning reads, such as whose a row is, has its name there, too.
    let patients = plain.replace("age,", "pid,age,").replace("60,", "7,60,");
    let named = "columns = { patient = 'pid' }";
    assert_eq!(
        answer(&patients, named, &[]).unwrap().rows,
        answer(plain, "", &[]).unwrap().rows
    );
}

#[test]
fn rows_that_do_not_fit_are_refused_with_file_row_and_column() {
    let good = "age,pulse,weight,ward\n60,80,70,general\n";
    for (from, to, expected) in [
        (
            "70,general",
            "70,attic",
            "line 2: column \"ward\" holds \"attic\", but the agreed levels are",
        ),
        (
            "60,80",
            "sixty,80",
            "line 2: column \"age\" holds \"sixty\", but a number is needed",
        ),
        ("60,80", "60.5,80", "a whole number is needed"),
        (
            ",pulse",
            ",plus",
            "there is no column \"pulse\"; the columns are age, plus, weight, ward",
        ),
        (
            "ward\n60,80,70,general",
            "ward,bed\n60,80,70,general,4",
            "the column \"bed\" is not in the schema",
        ),
        (
            "70,general",
            "general",
            "expected 4 cells, one per column, found 3",
        ),
    ] {
        assert!(good.contains(from));
        let said = answer(&good.replace(from, to), "", &[]).unwrap_err();
        assert!(said.contains(".csv") && said.contains(expected), "{said}");
    }
    // A missing value without a rule; where `only` asks for it, the row is left out instead.
    let everybody = CLINIC.replace("only = [\"age >= 18\"]", "");
    let gap = good.replace("60,80", ",80");
    let said = answer_by(&everybody, &gap, "", &[], BadRows::Refuse).unwrap_err();
    assert!(
        said.contains("line 2: column \"age\" holds \"\", but a value is needed"),
        "{said}"
    );
    assert_eq!(answer(&gap, "", &[]).unwrap().without, 1);
    let said = answer(good, "", &["patient"]).unwrap_err();
    assert!(said.contains("there is no column \"patient\""), "{said}");
}

#[test]
fn only_unfit_rows_are_skipped_with_their_line_and_reason() {
    let text = "patient,ward,age,pulse,weight\n\
        a,general,60,80,70\n\
        b,attic,60,80,70\n\
        c,general,sixty,80,70\n\
        d,general,60,80,\n\
        e,general,60,80,70\n";
    let found = answer_by(CLINIC, text, "", &["patient"], BadRows::Skip).unwrap();
    let patients: Vec<&str> = found.rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(patients, ["a", "b", "c", "d", "e"]);
    // One of the three without a prediction is left out by the schema, which is no fault.
    assert_eq!(found.without, 3);
    let [attic, sixty] = &found.skipped[..] else {
        panic!("{:?}", found.skipped);
    };
    for (said, part) in [
        (
            attic,
            "line 3: column \"ward\" holds \"attic\", but the agreed levels are general",
        ),
        (
            sixty,
            "line 4: column \"age\" holds \"sixty\", but a number is needed",
        ),
    ] {
        assert!(said.starts_with(part), "{said}");
    }
    assert_eq!(found.rows[1].last(), Some(attic));
    // The others are predicted as without the bad ones.
    let good = "patient,ward,age,pulse,weight\na,general,60,80,70\ne,general,60,80,70\n";
    let good = answer(good, "", &["patient"]).unwrap();
    assert_eq!(
        [&found.rows[0], &found.rows[4]],
        [&good.rows[0], &good.rows[1]]
    );
    // What is not the fault of a row is refused all the same.
    let broken = text.replace("b,attic,60,80,70", "b,attic,60,80");
    let said = answer_by(CLINIC, &broken, "", &["patient"], BadRows::Skip).unwrap_err();
    assert!(said.contains("line 3: expected 5 cells"), "{said}");
    let said = answer_by(CLINIC, text, "", &[], BadRows::Skip).unwrap_err();
    assert!(
        said.contains("the column \"patient\" is not in the schema"),
        "{said}"
    );
}

#[test]
fn a_threshold_decides_between_two_classes() {
    let task = task(CLINIC, "\"logistic\"", "silo");
    let (card, model) = card(&task, 2);
    let predictor = Predictor::new(card, &model).unwrap();
    let path = folder("threshold").join("rows.csv");
    std::fs::write(&path, "age,pulse,weight,ward\n60,80,70,general\n").unwrap();
    let names = LocalNames::default();
    let rows = predictor.read(&path, &Format::default(), &names, &[], BadRows::Refuse);
    let rows = rows.unwrap();
    for (threshold, class) in [(0.0, "died"), (1.0, "home")] {
        assert_eq!(predictor.answer(&rows, Some(threshold)).rows[0][0], class);
    }
}

#[test]
fn models_are_read_back_with_their_card_and_refused_if_changed() {
    let task = task(CLINIC, "{ mlp = { hidden = [4] } }", "federation");
    let (card, model) = card(&task, 2);
    let bytes = safetensors(&card, &model);
    assert_eq!(bytes, safetensors(&card, &model));
    let path = folder("file").join("m.safetensors");
    std::fs::write(&path, &bytes).unwrap();
    let (found, tensors) = read(&path).unwrap();
    assert_eq!(found, card);
    let rows = rows(card.columns.len(), 5, 1);
    let before = Predictor::new(card.clone(), &model).unwrap().predict(&rows);
    assert_eq!(
        Predictor::new(found, &tensors).unwrap().predict(&rows),
        before
    );
    // The document of the tensors alone is what the federation hashed.
    assert_eq!(start_model(&path, u64::MAX).unwrap().hash(), model.hash());
    let known = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(known.tensor("layer0.weight").unwrap().shape(), [4, 6]);
    for (name, change, expected) in [
        (
            "cut",
            &(|bytes: &mut Vec<u8>| bytes.truncate(40)) as &dyn Fn(&mut Vec<u8>),
            "no safetensors file",
        ),
        ("empty", &|bytes| bytes.clear(), "no safetensors file"),
        (
            "changed",
            &|bytes| *bytes.last_mut().unwrap() ^= 1,
            "its card is of a model with the hash",
        ),
        (
            "no card",
            &|bytes| *bytes = model.document().to_vec(),
            "it has no model card",
        ),
    ] {
        let mut changed = bytes.clone();
        change(&mut changed);
        std::fs::write(&path, changed).unwrap();
        let said = read(&path).unwrap_err().to_string();
        assert!(
            said.contains("m.safetensors: ") && said.contains(expected),
            "{name}: {said}"
        );
    }
}

#[test]
fn a_model_of_another_task_is_refused() {
    let (card, _) = card(&task(CLINIC, "{ mlp = { hidden = [4] } }", "silo"), 2);
    let (_, other) = model(&task(CLINIC, "{ mlp = { hidden = [5] } }", "silo"), 2);
    let error = Predictor::new(card, &other).err().unwrap().to_string();
    assert!(
        error.contains("expected the tensors layer0.bias [4]"),
        "{error}"
    );
}

#[test]
fn the_human_readable_card_states_what_it_is_and_what_goes_in() {
    let (mut card, _) = card(&task(CLINIC, "\"logistic\"", "silo"), 2);
    card.held_out = Some(HeldOut {
        rows: 12,
        metric: "accuracy".into(),
        unit: String::new(),
        metrics: [("accuracy".to_owned(), 0.75)].into(),
        constant: [("accuracy".to_owned(), 0.75)].into(),
    });
    let page = markdown(&card, &["m.safetensors".into()]);
    for said in [
        "# A model of clinics",
        "On 12 held-out rows its accuracy is 0.7500, that of a constant prediction 0.7500: it is worth no \
         more than that.",
        "| its id | abab",
        "| coalition | 1 of 2, made from 2 contributions |",
        "| certificate of a quorum | 0101",
        "| accuracy | 0.75 |",
        "For outcome, the probability of each of: home, died.",
        "| ward | one of general, intensive, children | the mean, and a mark |",
        "For rows with age >= 18 only; others get no prediction.",
        "| ward=intensive |",
        "| `weight` | [1, 6] |",
    ] {
        assert!(page.contains(said), "{said}: {page}");
    }
}

#[test]
fn a_changed_bit_of_an_exported_model_is_noticed_or_harmless() {
    let task = task(CLINIC, "'logistic'", "silo");
    let (card, model) = card(&task, 3);
    let whole = safetensors(&card, &model);
    let path = folder("bits").join("m.safetensors");
    std::fs::write(&path, &whole).unwrap();
    let before = read(&path).unwrap();
    let mut noticed = 0;
    for at in 0..whole.len() {
        for bit in [0, 4] {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            std::fs::write(&path, bytes).unwrap();
            match read(&path) {
                Err(why) => {
                    noticed += 1;
                    assert!(why.to_string().contains("m.safetensors: "), "{why}");
                }
                Ok(found) => assert!(found == before, "byte {at}"),
            }
        }
    }
    assert!(noticed > whole.len(), "{noticed} of {}", whole.len());
    for few in [0, 7, 8, 100, whole.len() - 1] {
        std::fs::write(&path, &whole[..few]).unwrap();
        assert!(read(&path).is_err(), "{few} bytes");
    }
}
