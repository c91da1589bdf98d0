//! Stays at hospitals: what the tests of whole federations agree on, and synthetic patients.

/// Task of the hospitals: agreed on by columns, without data.
pub(crate) const SCENARIO: &str = "name = 'stays'
rounds = 3
[task.table]
model = 'logistic'
metric = 'roc-auc'
[task.table.schema]
min-rows = 20
target = { name = 'outcome', classes = ['home', 'died'], positive = 'died' }
[[task.table.schema.feature]]
name = ['age', 'pulse']
range = [0, 300]
missing = 'median'
[[task.table.schema.feature]]
name = 'ward'
type = 'category'
levels = ['general', 'intensive']
[strategy]
name = 'fedavg'
training = { epochs = 2, batch = 8, optimiser = { name = 'sgd', rate = 0.1 } }
[protocol]
heartbeat = '100ms'
straggler-timeout = 50
";

/// Rows of a hospital's [`patients`] as a table in the agreed words.
pub(crate) fn table(hospital: usize) -> String {
    let row = |[age, pulse, ward, outcome]: [usize; 4]| {
        let (ward, outcome) = (["general", "intensive"][ward], ["home", "died"][outcome]);
        format!("{age},{pulse},{ward},{outcome}\n")
    };
    let rows: String = patients(hospital).map(row).collect();
    format!("age,pulse,ward,outcome\n{rows}")
}

/// 60 rows: age, pulse, ward (0 or 1), outcome (0 or 1).
pub(crate) fn patients(hospital: usize) -> impl Iterator<Item = [usize; 4]> {
    (0..60).map(move |row| {
        let age = 20 + (row * 37 + hospital * 11) % 70;
        let pulse = 60 + (row * 17 + hospital * 5) % 60;
        let ward = usize::from((row * 7 + hospital).is_multiple_of(3));
        [age, pulse, ward, usize::from(age + 20 * ward > 65)]
    })
}
