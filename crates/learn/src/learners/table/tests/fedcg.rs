//! Requests of FedCG to a silo with rows, and FedCG with it.

use methods::domains::{Activation, Projection, Propagation, residual};
use methods::learner::{Classifiers, Outputs, RowResults};
use methods::strategy::{OwnRadius, StrategyConfig, build};
use methods::{Matrix, Strategy};
use serde_json::{Value, json};

use super::*;

pub(super) fn strategy(name: &str, more: Value) -> Box<dyn Strategy> {
    let optimiser = json!({ "name": "sgd", "rate": 0.05 });
    let training = json!({ "epochs": 1, "batch": 8, "optimiser": optimiser });
    let mut config = json!({ "name": name, "training": training });
    let more = more.as_object().unwrap().clone();
    config.as_object_mut().unwrap().extend(more);
    let config: StrategyConfig = serde_json::from_value(config).unwrap();
    build(&config, 2).unwrap()
}

fn equipped(learner: TableLearner, more: Value) -> Arc<dyn Learner> {
    strategy("fedcg", more).equip(Arc::new(learner)).unwrap()
}

fn plain(epochs: u32, batch: u32, rate: f64) -> Task {
    Task::Train(Training {
        epochs,
        batch,
        optimiser: Optimiser::Sgd {
            rate,
            momentum: 0.0,
            weight_decay: 0.0,
        },
        decay: None,
    })
}

fn trained(learner: &dyn Learner, start: &Params, task: &Task, seed: u64) -> Update {
    let go_on = &mut |_| ControlFlow::Continue(());
    learner
        .carry_out(start, &Params::empty(), task, seed, go_on)
        .unwrap()
}

/// A model with one tensor replaced.
fn with(model: &Params, name: &str, values: &[f32]) -> Params {
    let range = model.layout().range(model.layout().position(name).unwrap());
    Params::build(model.layout(), |into| {
        into.copy_from_slice(model.values());
        into[range].copy_from_slice(values);
    })
}

fn named(model: &Params, prefix: &str) -> Params {
    let layout = model
        .layout()
        .select(|tensor| tensor.name.starts_with(prefix));
    Params::gather(&layout, &[model]).unwrap()
}

/// With the teacher's values for the student, so that a row is measured as it is trained.
fn agreed(model: &Params) -> Params {
    let (student, teacher) = (
        named(model, "fedcg.student."),
        named(model, "fedcg.teacher."),
    );
    let student = Params::from_values(student.layout(), teacher.values());
    Params::gather(model.layout(), &[&student, model]).unwrap()
}

#[test]
fn steps_taken_one_by_one_are_those_of_a_training() {
    let learner = learner(LearnerKind::Mlp, &table(60, 1, true), Standardise::Silo);
    let Task::Train(training) = plain(2, 8, 0.05) else {
        unreachable!()
    };
    let batches = learner.batches(&training, 7).unwrap();
    assert_eq!(batches.len() as u64, training.steps(learner.samples()));
    let start = learner.initial(0);
    let mut model = start.clone();
    for batch in &batches {
        let only = learner.only(Split::Train, batch).unwrap();
        model = trained(&*only, &model, &plain(1, 0, 0.05), 3).shared;
    }
    let whole = trained(&learner, &start, &plain(2, 8, 0.05), 7).shared;
    assert_eq!(model, whole, "bit for bit");
    assert!(
        learner
            .only(Split::Train, &[learner.samples() as u32])
            .is_none()
    );
}

#[test]
fn outputs_measure_as_the_model_does() {
    for (kind, classes) in [(LearnerKind::Squared, false), (LearnerKind::Mlp, true)] {
        let learner = learner(kind, &table(60, 1, classes), Standardise::Federation);
        let model = learner.initial(3);
        let none = Params::empty();
        let outputs = learner.outputs(&model, &none, Split::Test).unwrap();
        let metrics = learner
            .measure(&model, &none, &outputs, Split::Test)
            .unwrap();
        assert_eq!(
            metrics,
            learner.evaluate(&model, &none, Split::Test).unwrap()
        );
    }
}

#[test]
fn a_classifier_learns_any_labels_of_the_rows() {
    for standardise in [Standardise::Silo, Standardise::Federation] {
        let learner = learner(LearnerKind::Squared, &table(120, 1, false), standardise);
        let labels: Vec<u32> = (0..learner.samples() as usize)
            .map(|row| u32::from(learner.train.features(row)[1] > 0.0) * 2)
            .collect();
        let classifier = learner.classifier(&labels, 3, &[8]);
        // A federation's scale is in the model's buffers, those of the classifier among them.
        let start = learner.initial(0);
        let summary = trained_summary(&learner, &start);
        let start = summary.map_or(start.clone(), |summary| common_scale(&start, &[summary]));
        let first = Params::gather(&classifier.layout(), &[&start, &classifier.initial(1)]);
        let end = trained(&*classifier, &first.unwrap(), &plain(100, 8, 0.2), 5).shared;
        let metrics = classifier
            .evaluate(&end, &Params::empty(), Split::Train)
            .unwrap();
        assert!(
            metrics.values["accuracy"] > 0.95,
            "{standardise:?} {metrics:?}"
        );
        let outputs = classifier
            .outputs()
            .unwrap()
            .outputs(&end, &Params::empty(), Split::Test)
            .unwrap();
        assert_eq!(outputs.len(), 3 * learner.test.len());
    }
}

fn trained_summary(learner: &TableLearner, start: &Params) -> Option<Params> {
    learner.capabilities().summaries?;
    Some(trained(learner, start, &Task::Summarise, 0).shared)
}

#[test]
fn branches_that_stay_silent_leave_every_bit_of_a_training() {
    let table = table(60, 1, true);
    let bare = learner(LearnerKind::Mlp, &table, Standardise::Silo);
    let silent = json!({ "lambda": 0, "learn-lambda": false, "domains": 3 });
    let silent = equipped(learner(LearnerKind::Mlp, &table, Standardise::Silo), silent);
    let task = plain(3, 8, 0.05);
    let own = trained(&bare, &bare.initial(4), &task, 9);
    let cut = trained(&*silent, &silent.initial(4), &task, 9);
    let shared = Params::gather(&bare.layout(), &[&cut.shared]).unwrap();
    assert_eq!(shared, own.shared);
    assert_eq!(cut.metrics.values["loss"], own.metrics.values["loss"]);
    let none = Params::empty();
    let measured = silent.evaluate(&cut.shared, &none, Split::Test).unwrap();
    assert_eq!(
        measured,
        bare.evaluate(&shared, &none, Split::Test).unwrap()
    );
    let counts = (0..3).map(|domain| cut.metrics.values[&format!("domain-{domain}")]);
    assert_eq!(counts.sum::<f64>(), bare.samples() as f64);
}

#[test]
fn outputs_are_those_of_the_layer_with_its_branches() {
    let table = table(60, 1, true);
    let bare = learner(LearnerKind::Logistic, &table, Standardise::Silo);
    let by = equipped(
        learner(LearnerKind::Logistic, &table, Standardise::Silo),
        json!({ "domains": 3 }),
    );
    let model = by.initial(4);
    let model = with(&model, "weight", &[0.3, -0.8]);
    let model = with(&model, "fedcg.graph.lambda", &[0.7]);
    let tensor = |name: &str| -> Vec<f64> {
        model
            .tensor(name)
            .unwrap()
            .iter()
            .map(|&value| value.into())
            .collect()
    };
    let branches = (0..3).map(|domain| {
        let part = |part| tensor(&format!("fedcg.domain{domain}.{part}"));
        [part("bias"), part("weight")].concat()
    });
    let branches = Matrix::from_rows(&branches.collect::<Vec<_>>()).unwrap();
    let weight = tensor("fedcg.graph.projection");
    let convolution = Propagation {
        activation: Activation::Relu,
        projection: Projection::Full(Matrix::from_fn(3, 3, |i, j| weight[3 * i + j])),
    };
    let adjacency = methods::domains::adjacency::identity(3);
    let made = convolution.forward(&adjacency, &branches).unwrap();
    let student = bare.classifier(&vec![0; bare.samples() as usize], 3, &[16]);
    let opinion = named(&model, "fedcg.student.");
    let opinion = Params::from_values(&student.layout(), opinion.values());
    let opinions = student
        .outputs()
        .unwrap()
        .outputs(&opinion, &Params::empty(), Split::Test)
        .unwrap();
    let outputs = by.outputs().unwrap();
    let outputs = outputs
        .outputs(&model, &Params::empty(), Split::Test)
        .unwrap();
    assert_eq!(outputs.len(), bare.test.len());
    for (row, output) in outputs.iter().enumerate() {
        let x = bare.test.features(row);
        let line = |bias: f64, weight: &[f64]| {
            bias + weight
                .iter()
                .zip(x)
                .map(|(w, &x)| w * f64::from(x))
                .sum::<f64>()
        };
        let each = opinions[3 * row..][..3].iter().map(|o| o.exp());
        let each: Vec<f64> = each.collect();
        let sum: f64 = each.iter().sum();
        let shares: Vec<f64> = each.iter().map(|e| e / sum).collect();
        let of = |domain: usize, _| line(made.row(domain)[0], &made.row(domain)[1..]);
        let branches = Matrix::from_fn(3, 1, of);
        let shared = [line(0.0, &tensor("weight"))];
        let known = residual(&shared, &branches, &shares, 0.7).unwrap();
        assert!(
            (output - known[0]).abs() < 1e-5,
            "{row}: {output} {known:?}"
        );
    }
}

#[test]
fn a_step_is_the_rate_times_finite_differences() {
    let table = table(40, 1, true);
    for more in [
        json!({ "sigma": "identity" }),
        json!({ "sigma": "relu" }),
        json!({ "projection": { "bottleneck": 2 }, "sigma": "identity" }),
        json!({ "projection": { "bottleneck": 2 }, "passes": "one" }),
        json!({ "projection": "none", "adjacency": "uniform" }),
    ] {
        let mut options = json!({ "domains": 2, "assignment": "hard" });
        options
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        for kind in [LearnerKind::Logistic, LearnerKind::Mlp] {
            let by = equipped(learner(kind, &table, Standardise::Silo), options.clone());
            let start = agreed(&by.initial(2));
            let graph = [0.6, 0.4, 0.3, 0.7];
            let start = with(&start, "fedcg.graph.adjacency", &graph);
            let rate = 0.02;
            let update = trained(&*by, &start, &plain(1, 0, rate), 1);
            let counts = [0, 1].map(|domain| update.metrics.values[&format!("domain-{domain}")]);
            assert!(counts.iter().all(|&count| count > 0.0), "{counts:?}");
            let loss = |model: &Params| {
                let metrics = by.evaluate(model, &Params::empty(), Split::Train);
                metrics.unwrap().values["loss"]
            };
            let tensors = start.layout().tensors().iter().enumerate();
            let trains = |name: &str| {
                !name.ends_with("adjacency")
                    && !name.ends_with("shares")
                    && !name.contains(".student")
                    && !name.contains(".teacher")
                    && !name.starts_with("layer0")
            };
            let (mut moved, mut narrow, mut checked) = (0, 0, 0);
            for (index, tensor) in tensors.filter(|(_, tensor)| trains(&tensor.name)) {
                let range = start.layout().range(index);
                for at in range.clone().step_by(range.len().div_ceil(12)) {
                    let h = 1.0 / 1024.0;
                    let off = |by: f32| {
                        loss(&Params::build(start.layout(), |into| {
                            into.copy_from_slice(start.values());
                            into[at] += by;
                        }))
                    };
                    let (above, here, below) = (off(h), off(0.0), off(-h));
                    let h = f64::from(h);
                    // Where a value of V̂ is about 0, ReLU has another slope on either side.
                    let sides = [(above - here) / h, (here - below) / h];
                    let (low, high) = (sides[0].min(sides[1]), sides[0].max(sides[1]));
                    let went =
                        f64::from(start.values()[at]) - f64::from(update.shared.values()[at]);
                    let slope = went / rate;
                    let off = 5e-4 + 5e-3 * slope.abs();
                    assert!(
                        (low - off..high + off).contains(&slope),
                        "{more} {} {at}: {slope} {sides:?}",
                        tensor.name
                    );
                    narrow += usize::from(high - low < off);
                    checked += 1;
                    moved += usize::from(slope.abs() > 1e-3);
                }
            }
            assert!(
                moved > 3 && 10 * narrow > 9 * checked,
                "{more}: {moved} {narrow}"
            );
        }
    }
}

#[test]
fn a_student_that_is_certain_gives_hard_domains_in_all_layers() {
    let table = table(60, 1, true);
    let of = |assignment: &str| {
        let options = json!({
            "domains": 2, "layers": "all", "assignment": assignment, "projection": "none",
        });
        equipped(
            learner(LearnerKind::Mlp, &table, Standardise::Silo),
            options,
        )
    };
    let (soft, hard) = (of("soft"), of("hard"));
    let model = soft.initial(4);
    let student = named(&model, "fedcg.student.");
    let sure: Vec<f32> = student.values().iter().map(|value| 1e3 * value).collect();
    let sure = Params::from_values(student.layout(), &sure);
    let sure = Params::gather(model.layout(), &[&sure, &model]).unwrap();
    let outputs = |by: &Arc<dyn Learner>, model: &Params| {
        let by = by.outputs().unwrap();
        by.outputs(model, &Params::empty(), Split::Test).unwrap()
    };
    let (a, b) = (outputs(&soft, &sure), outputs(&hard, &sure));
    let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5);
    assert!(near(&a, &b));
    assert!(!near(&outputs(&soft, &model), &outputs(&hard, &model)));
    let metrics = soft
        .evaluate(&model, &Params::empty(), Split::Test)
        .unwrap();
    assert!(metrics.values.contains_key("roc-auc") && metrics.samples == 18);
}

#[test]
fn a_mixture_of_outputs_is_the_output_of_the_mixture() {
    // Where it is not known that the layer makes the outputs, rows go one by one.
    let table = table(60, 1, true);
    let by = equipped(
        learner(LearnerKind::Mlp, &table, Standardise::Silo),
        json!({ "domains": 3 }),
    );
    let hidden = Arc::new(Hidden(learner(LearnerKind::Mlp, &table, Standardise::Silo)));
    let one_by_one = strategy("fedcg", json!({ "domains": 3 }))
        .equip(hidden)
        .unwrap();
    let model = by.initial(6);
    let none = Params::empty();
    let by = by.outputs().unwrap();
    let mixed = by.outputs(&model, &none, Split::Test).unwrap();
    let one_by_one = one_by_one.outputs().unwrap();
    let exact = one_by_one.outputs(&model, &none, Split::Test).unwrap();
    assert_eq!(mixed.len(), exact.len());
    for (mixed, exact) in mixed.iter().zip(exact) {
        assert!((mixed - exact).abs() < 1e-5, "{mixed} {exact}");
    }
}

/// A learner that does not name the layer that makes its outputs.
struct Hidden(TableLearner);

impl Learner for Hidden {
    fn layout(&self) -> Arc<Layout> {
        self.0.layout()
    }
    fn initial(&self, seed: u64) -> Params {
        self.0.initial(seed)
    }
    fn train(
        &self,
        start: &Params,
        personal: &Params,
        training: &Training,
        seed: u64,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        self.0.train(start, personal, training, seed, progress)
    }
    fn evaluate(&self, model: &Params, own: &Params, split: Split) -> Result<Metrics, LearnError> {
        self.0.evaluate(model, own, split)
    }
    fn samples(&self) -> u64 {
        self.0.samples()
    }
    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            outputs: Some(self),
            ..self.0.capabilities()
        }
    }
}

impl Outputs for Hidden {
    fn outputs(&self, model: &Params, own: &Params, split: Split) -> Result<Vec<f64>, LearnError> {
        self.0.outputs(model, own, split)
    }
    fn measure(
        &self,
        model: &Params,
        own: &Params,
        outputs: &[f64],
        split: Split,
    ) -> Result<Metrics, LearnError> {
        self.0.measure(model, own, outputs, split)
    }
    fn row_results(
        &self,
        model: &Params,
        own: &Params,
        outputs: &[f64],
        split: Split,
    ) -> Result<RowResults, LearnError> {
        self.0.row_results(model, own, outputs, split)
    }
    fn mean_target(&self, model: &Params, own: &Params, width: usize) -> Option<Vec<f64>> {
        self.0.mean_target(model, own, width)
    }
    fn constant(&self, mean_target: &[f64]) -> Vec<f64> {
        self.0.constant(mean_target)
    }
}

#[test]
fn momentum_and_decay_are_those_of_a_training_up_to_rounding() {
    let table = table(60, 1, true);
    let bare = learner(LearnerKind::Mlp, &table, Standardise::Silo);
    let silent = json!({ "lambda": 0, "learn-lambda": false });
    let silent = equipped(learner(LearnerKind::Mlp, &table, Standardise::Silo), silent);
    let optimiser = Optimiser::Sgd {
        rate: 0.05,
        momentum: 0.9,
        weight_decay: 0.1,
    };
    let task = Task::Train(Training {
        epochs: 3,
        batch: 8,
        optimiser,
        decay: None,
    });
    let own = trained(&bare, &bare.initial(4), &task, 9).shared;
    let cut = trained(&*silent, &silent.initial(4), &task, 9).shared;
    let cut = Params::gather(&bare.layout(), &[&cut]).unwrap();
    for (cut, own) in cut.values().iter().zip(own.values()) {
        assert!((cut - own).abs() < 1e-4, "{cut} {own}");
    }
}

/// Rows of these domains in turn. The first feature identifies the domain; the second one
/// has the opposite meaning for the class in domain 1.
fn opposite(domains: &[u32], rows: usize) -> Table {
    let mut rng = stream(5, "opposite domains");
    let mut table = Table::new(vec!["a".into(), "b".into()]);
    for &domain in domains.iter().cycle().take(rows) {
        let mut draw = || 2.0 * uniform(&mut rng) - 1.0;
        let (a, b) = (2.0 * f64::from(domain) - 1.0 + 0.3 * draw(), draw());
        table.push(&[a, b], f64::from((b > 0.0) == (domain == 0)));
    }
    table
}

#[test]
fn domains_of_rows_mixed_in_every_silo_reach_their_branches() {
    let options = json!({
        "domains": 2, "given": true, "sigma": "identity", "projection": "none",
        "student-rate": 0.2,
    });
    let silo = |known: bool| {
        let mut table = opposite(&[0, 1], 160);
        if known {
            table.domains = (0..160).map(|row| row % 2).collect();
        }
        learner(LearnerKind::Logistic, &table, Standardise::None)
    };
    let accuracy = |silo: TableLearner| {
        let silo = equipped(silo, options.clone());
        let mut model = silo.initial(3);
        for round in 0..40 {
            let update = trained(&*silo, &model, &plain(1, 8, 0.2), round);
            let counts = [0, 1].map(|domain| update.metrics.values[&format!("domain-{domain}")]);
            assert_eq!(counts.iter().sum::<f64>(), update.samples as f64);
            model = update.shared;
        }
        let metrics = silo
            .evaluate(&model, &Params::empty(), Split::Test)
            .unwrap();
        metrics.values["accuracy"]
    };
    let (known, one) = (accuracy(silo(true)), accuracy(silo(true).within(Some(0))));
    assert!(known > 0.9 && one < 0.7, "{known} {one}");
    // Rows keep their domains in parts and folds.
    let known = silo(true);
    let all = known.row_domains().unwrap();
    assert_eq!(
        known.picked(Split::Train, &[3, 0]).unwrap().row_domains(),
        Some(vec![all[3], all[0]])
    );
    let fold = known.without_fold(0, 4, 1).unwrap();
    assert_eq!(fold.row_domains().unwrap().len() as u64, fold.samples());
    // Without them FedCG with given domains cannot start.
    let fedcg = strategy("fedcg", options);
    let silo = Arc::new(silo(false));
    let error = methods::strategy::equip(&*fedcg, silo, &OwnRadius::default())
        .err()
        .unwrap();
    assert!(error.to_string().contains("domain"), "{error}");
}

#[test]
fn a_student_of_given_domains_sorts_rows_of_silos_without_one() {
    let accuracy = |given: &[Option<u32>; 2]| {
        let by = |table: &Table, domain: Option<u32>| {
            let options = json!({
                "domains": 2, "given": true, "sigma": "identity", "projection": "none",
                "student-rate": 0.2,
            });
            let silo = learner(LearnerKind::Logistic, table, Standardise::None).within(domain);
            equipped(silo, options)
        };
        let silos = [0, 1].map(|at| by(&opposite(&[at as u32], 120), given[at]));
        let mut model = silos[0].initial(3);
        for round in 0..40 {
            let updates = silos.each_ref().map(|silo| {
                let update = trained(&**silo, &model, &plain(1, 8, 0.2), round);
                (update.shared, update.samples as f64)
            });
            let each = updates.each_ref().map(|(model, rows)| (model, *rows));
            model = methods::params::weighted_mean(&each).unwrap();
        }
        let outside = by(&opposite(&[0, 1], 200), None);
        let none = Params::empty();
        let metrics = outside.evaluate(&model, &none, Split::Test).unwrap();
        metrics.values["accuracy"]
    };
    let apart = accuracy(&[Some(0), Some(1)]);
    let together = accuracy(&[Some(0), Some(0)]);
    assert!(apart > 0.9 && together < 0.7, "{apart} {together}");
}
