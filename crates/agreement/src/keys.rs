//! Every key of `federation.toml` in words, and what a change of it means: whether it may change while
//! the federation runs, and when it protects less than before.
//!
//! A key that is not in this list counts as one that may not change, so that a new one is never passed
//! over; a test asks for its words.

use crate::canonical::Canonical;

/// Description of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    /// Path of the key, as in the file. `*` stands for the name of a member; `**` for all keys of a table,
    /// and the table itself.
    pub(crate) path: &'static str,
    /// Meaning of the key, as a noun phrase.
    pub(crate) words: &'static str,
    /// True if the value has to stay as long as the federation runs.
    pub(crate) fixed: bool,
    /// Rule by which another value protects less.
    pub(crate) weakens: Weakens,
    /// Consequence of another value that protects less.
    pub(crate) why: &'static str,
}

/// The rule by which another value of a key protects an institution less than the one before, against
/// members that break the rules, against the curiosity of members, or against strangers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Weakens {
    /// The key protects as much with every value.
    Never,
    /// Every other value has to be looked at, because only its institution knows whether it is right.
    Changed,
    /// A larger number, or none at all, which is no bound.
    Raised,
    /// A smaller number.
    Lowered,
    /// A value of a higher rank.
    Ranked(fn(Option<&Canonical>) -> u64),
}

const fn key(path: &'static str, words: &'static str) -> Key {
    Key {
        path,
        words,
        fixed: false,
        weakens: Weakens::Never,
        why: "",
    }
}

impl Key {
    const fn fixed(self) -> Self {
        Self {
            fixed: true,
            ..self
        }
    }

    const fn weakens(self, weakens: Weakens, why: &'static str) -> Self {
        Self {
            weakens,
            why,
            ..self
        }
    }
}

use Weakens::{Changed, Lowered, Raised, Ranked};

/// All keys. The path of a rule within another (`strategy.aggregation.then`) is that of the rule alone.
pub(crate) const KEYS: &[Key] = &[
    key("format", "the format of the members' messages"),
    key("name", "the name of the federation"),
    key("rounds", "the number of rounds"),
    key("seed", "the seed").fixed(),
    key("start", "the start").fixed(),
    key("continues.**", "the federation that it continues").fixed(),
    // ---- Members.
    key("member", "the order of the members, by which they take turns, and by which the task names them").weakens(
        Changed,
        "another member leads where the first one always does, and what the task says of members by their \
         place is said of others",
    ),
    key("member.*", "a member"),
    key("member.*.name", "the name of a member").weakens(
        Changed,
        "the holder of this key has another name from now on",
    ),
    key("member.*.key", "the key of a member").weakens(
        Changed,
        "whoever has the new key acts as this member: confirm it with the member over another channel than that of \
         the proposal",
    ),
    key("member.*.addresses", "where the node of a member is reached").weakens(
        Changed,
        "whoever is at that address cannot act as the member, but sees who connects to it; if it is wrong, the \
         member is not reached",
    ),
    key("member.*.rows", "the training rows that a member declared").weakens(
        Raised,
        "its model may weigh more than before",
    ),
    // What was opened once cannot be opened of other models.
    key("serving.**", "how members decide which model each of them serves").fixed(),
    // ---- The parameter set.
    key("protocol", "the rules of the rounds"),
    key("protocol.heartbeat", "the unit of all timers"),
    key("protocol.straggler-timeout", "the heartbeats that a round waits for a slow member"),
    key("protocol.view-timeout", "the heartbeats after which a lead is replaced"),
    key("protocol.min-contributions", "the fewest contributions of a round").weakens(
        Lowered,
        "a round may be made of the models of fewer members, and so follow single ones more",
    ),
    key("protocol.keep-rounds", "the rounds whose models members keep for others to fetch").weakens(
        Raised,
        "models stay longer at the other members",
    ),
    key("protocol.blob-limit", "the largest size of a contribution, in bytes").weakens(
        Raised,
        "members accept and keep more bytes of every other",
    ),
    key(
        "protocol.discovery",
        "whether nodes find each other on a local network by multicast DNS",
    )
    .weakens(
        Ranked(switched_on),
        "every node opens a port for it, and is visible to every machine on its network",
    ),
    key("protocol.max-model-norm", "the largest ℓ2 norm of a contributed model").weakens(
        Raised,
        "a member that breaks the rules may move the global model further",
    ),
    key("protocol.max-weight", "the largest share of the weights that one member may have").weakens(
        Raised,
        "one member may have more influence on the global model",
    ),
    key("protocol.rotation", "who leads when").weakens(
        Ranked(rotation),
        "one member leads for longer, and knows the authors of all models while it does",
    ),
    key("protocol.verification", "who computes the models again before a round counts").weakens(
        Ranked(verification),
        "fewer members check the lead of a round",
    ),
    key("protocol.names", "whether members see whose contribution is whose").weakens(
        Ranked(names),
        "every member learns which model is whose",
    ),
    key("protocol.status", "who sees how a node is doing").weakens(
        Ranked(status),
        "every member sees when this node works, which members it reaches, and its free disk space",
    ),
    // ---- What members see of contributions.
    key("privacy", "what members see of each other's models"),
    key("privacy.mode", "what members see of each other's models").weakens(
        Ranked(seen),
        "every member sees more of single models or rows than before: sums without noise show more than noised \
         ones, and models in clear show all",
    ),
    key(
        "privacy.colluders",
        "how many members may collude and learn nothing but sums",
    )
    .weakens(
        Lowered,
        "fewer colluding members are enough to open single models",
    ),
    key("privacy.min-sum-size", "the fewest institutions of a group whose models are added up").weakens(
        Lowered,
        "a sum may have fewer authors, and so disclose more about each",
    ),
    key("privacy.group.**", "the groups whose models are added up, and the weights in them").weakens(
        Changed,
        "the difference of a sum before and one after may show the model of a single institution, so \
         members of the old group help to open no sum of the new one",
    ),
    key("privacy.shows.**", "whose updates become visible because groups change").weakens(
        Changed,
        "the updates of these institutions become visible, as the difference of a sum before and a sum after",
    ),
    key("privacy.min-authors", "the fewest institutions of a differentially private sum").weakens(
        Changed,
        "with fewer, a sum discloses more about each; with more, each adds less noise of its own, and less is left \
         if all others collude",
    ),
    key("privacy.mechanism", "what differentially private sums are sums of"),
    key("privacy.privacy-unit.**", "whose presence the noise hides").weakens(
        Changed,
        "the bound holds for something else than before",
    ),
    key("privacy.clipping-norm", "the norm to which the gradient of a unit is clipped"),
    key("privacy.max-row-norm", "the norm to which a row is shortened"),
    key("privacy.max-target", "the size that no target exceeds"),
    key("privacy.ridge", "the ridge of a model that is solved at once"),
    key("privacy.noise-multiplier", "the noise of a sum").weakens(Lowered, "there is less noise in every sum"),
    key("privacy.epsilon", "the bound that the rounds still to come keep to").weakens(
        Raised,
        "there is less noise in every sum",
    ),
    key("privacy.delta", "the probability with which epsilon may be exceeded")
        .weakens(Raised, "the bound may be exceeded more often"),
    // ---- The task.
    key("task.**", "the task").fixed(),
    key("question", "a question about the rows of all members"),
    // ---- The strategy: what goes with every method.
    key("strategy", "the strategy").fixed(),
    key("strategy.name", "the strategy").fixed(),
    // They change the tensors of every model.
    key("strategy.personal", "which layers stay with each silo (`personal`)").fixed(),
    key("strategy.trained", "which layers are trained (`trained`)").fixed(),
    key("strategy.aggregation", "the rule that combines models"),
    key("strategy.aggregation.name", "the rule that combines models").weakens(
        Ranked(aggregation),
        "the mean follows every single model, also one that breaks the rules",
    ),
    key("strategy.aggregation.share", "the share of models left out at each end").weakens(
        Lowered,
        "the rule withstands fewer models that break the rules",
    ),
    key("strategy.aggregation.byzantine", "the number of models that may be arbitrary").weakens(
        Lowered,
        "the rule withstands fewer models that break the rules",
    ),
    key("strategy.aggregation.select", "the number of models that are averaged").weakens(
        Raised,
        "more models count, also such as break the rules",
    ),
    key("strategy.aggregation.radius", "the radius to which differences are clipped").weakens(
        Raised,
        "a model that breaks the rules may move the global one further",
    ),
    key("strategy.aggregation.iterations", "the number of iterations of the rule"),
    key("strategy.aggregation.smoothing", "the lower bound of a distance, as a fraction of the median one"),
    key("strategy.aggregation.tolerance", "the gradient at which the rule stops"),
    key("strategy.aggregation.start", "where the rule starts"),
    key("strategy.aggregation.then", "the rule for the mixed models"),
    key("strategy.encoding", "how contributed models travel"),
    key("strategy.encoding.topk", "the share of a model's values that travel"),
    key("strategy.participation", "how many members take part in a round that trains"),
    key("strategy.stop", "when the federation ends before its last round"),
    key("strategy.stop.patience", "the rounds without a better one after which it ends"),
    key("strategy.stop.measure.**", "what is compared on validation rows"),
    key("strategy.stop.min-delta", "the least difference that counts as better"),
    key("strategy.training", "the local training of a round"),
    key("strategy.training.epochs", "the passes over a silo's training rows in a round"),
    key("strategy.training.batch", "the rows of a training step; 0 for all"),
    key("strategy.training.optimiser", "the optimiser of local training"),
    key("strategy.training.optimiser.name", "the optimiser of local training"),
    key("strategy.training.optimiser.rate", "the learning rate of local training"),
    key("strategy.training.optimiser.momentum", "the momentum of local training"),
    key("strategy.training.optimiser.weight-decay", "the weight decay of local training"),
    key("strategy.training.decay", "how the learning rate falls from round to round"),
    key("strategy.training.decay.step", "a rate that falls in steps"),
    key("strategy.training.decay.step.every", "the rounds with the same rate"),
    key("strategy.training.decay.step.factor", "the factor of the rate after these rounds"),
    key("strategy.training.decay.exponential", "the factor of the rate after every round"),
    key("strategy.training.decay.cosine", "a rate that falls like half a cosine"),
    key("strategy.training.decay.cosine.least", "the fraction of the rate that it falls towards"),
    // ---- Options of single methods.
    key("strategy.momentum", "the share of its last change that every change of the global model keeps"),
    key("strategy.weight", "what a silo's model counts in the mean").weakens(
        Ranked(weight),
        "silos send their numbers of rows, which may give away whose model it is, and one that claims \
         many counts more",
    ),
    key("strategy.gap", "the largest gap to the best grouping that members accept").weakens(
        Raised,
        "the lead may choose groups further from the best ones",
    ),
    key("strategy.coalitions", "the number of coalitions"),
    key("strategy.freeze", "the rounds that form groups, after which they stay; 0 for all"),
    key("strategy.folds", "the folds of cross-fitting"),
    key("strategy.warm-up", "the rounds before coalitions are formed"),
    key("strategy.fit", "how silos find their models"),
    key("strategy.ridge", "the strength of the ridge of exact fits"),
    key("strategy.ridge.folds", "the folds that choose the strength of the ridge"),
    key("strategy.ridge.grid", "the strengths of the ridge to choose from"),
    key("strategy.mu", "the strength of the proximal term"),
    key("strategy.lambda", "the strength of the term that keeps a silo's local model near the global one"),
    key("strategy.beta1", "the decay of the first moment"),
    key("strategy.beta2", "the decay of the second moment"),
    key("strategy.rate", "the method's own learning rate"),
    key("strategy.tau", "the degree of adaptivity"),
    key("strategy.rule", "the rule of a strategy of one's own, by its name in the process that runs it"),
    key("strategy.needs", "what a strategy of one's own sees of a round").weakens(
        Changed,
        "its rule may see models, losses or numbers of single silos that it did not see before",
    ),
    key("strategy.local-rounds", "the trainings of a silo's local model in a round"),
    key("strategy.steps", "the steps that adapt how models are mixed"),
    key("strategy.head-epochs", "the epochs of the last layer"),
    key("strategy.alpha", "α of the method: in HCCT the weight of rows against the direction of updates, in FedDyn the strength of the \
         regulariser, in APFL the share of the local model"),
    key("strategy.alpha.share", "the weight of rows, as a share of a silo's own"),
    key("strategy.alpha.common", "the weight of rows, the same for all silos"),
    key("strategy.alpha.each", "the weight of rows of every member"),
    key("strategy.grouping", "when groups are formed, and of which models"),
    key("strategy.regroup", "when new groups replace the present ones"),
    key("strategy.groups", "the number of groups at which merging stops"),
    key("strategy.varying", "which coefficients of a mixed model may differ between silos; several are tried"),
    key("strategy.lean", "whether most rounds send the diagonals of matrices alone"),
    key("strategy.tolerance", "the longest step at which a mixed model is done"),
    key("strategy.precision", "the precision of common slopes around 0; estimated without it"),
    key("strategy.exponent", "the power of two of the steps in which sums travel as integers"),
    key("strategy.unknowns-per-number", "the unknown values of others for each number that sums may open").weakens(
        Lowered,
        "sums of the same rows may open more numbers, which are equations for the values of single silos",
    ),
    key("strategy.statistic", "what selects the layer by which silos are compared"),
    key("strategy.centrality", "the centrality that gives a member its prior weight"),
    key("strategy.clusters", "the clusters of members over which the graph is learned"),
    key("strategy.divergence", "the distance of the weights from the prior"),
    key("strategy.embedding", "the part of the models that is compared"),
    key("strategy.embedding.part", "the part of the models that is compared"),
    key("strategy.embedding.part.last", "the last layers that are compared"),
    key("strategy.embedding.part.named", "the layers that are compared"),
    key("strategy.embedding.update", "whether updates are compared instead of weights"),
    key("strategy.embedding.sketch", "the random projection of what is compared"),
    key("strategy.embedding.sketch.columns", "the columns of the random projection"),
    key("strategy.embedding.sketch.seed", "the seed of the random projection"),
    key("strategy.epsilon", "the similarity from which two members are neighbours"),
    key("strategy.full-refresh", "whether all members train in rounds that learn a graph"),
    key("strategy.lambda-floor", "the least weight of a member"),
    key("strategy.lengths", "the length of an edge of the graph"),
    key("strategy.losses", "the members whose losses change the weights"),
    key("strategy.losses.uniform", "the number of members whose losses change the weights"),
    key("strategy.participants", "the members that train in a round"),
    key("strategy.participants.sample", "the number of members drawn to train in a round"),
    key("strategy.period", "the rounds from one graph to the next"),
    key("strategy.q", "the strength of the penalty on the distance from the prior"),
    key("strategy.replacement", "whether a member can be drawn more than once in a round"),
    key("strategy.scale", "the scale of the centralities"),
    key("strategy.similarity", "the similarity of two models"),
    key("strategy.decay", "the factor of the rate after every round"),
    key("strategy.sample", "the members drawn to train in a round; 0 for half of them"),
    key("strategy.variant", "what a silo does for which the global model is not good enough"),
    key("strategy.theta", "the share of the smallest losses that is left out"),
    key("strategy.models", "the number of models"),
    key("strategy.start", "the models that silos choose among in the first round"),
    key("strategy.select", "the number of models whose mean a silo trains"),
    key("strategy.after", "the first rounds in which no cluster is split"),
    key("strategy.larger-than", "the size up to which no cluster is split"),
    key("strategy.largest-above", "the update above which a cluster may be split"),
    key("strategy.mean-below", "the mean update below which a cluster may be split"),
    key("strategy.linkage", "how a cluster is split in two"),
    key("strategy.c", "the penalty on few rows"),
    key("strategy.orders", "the descents of the search for coalitions"),
    key("strategy.alike", "the cosine above which two silos count as alike"),
    key("strategy.since", "the model from which a silo's change is measured"),
    key("strategy.adjacency", "the edges of the graph of domains"),
    key("strategy.assignment", "which branches evaluate a row"),
    key("strategy.beta", "β of the method: in FedCG the share of a domain's own branch in its neighbourhood, in pFedMe that of the way \
         to the mean"),
    key("strategy.domains", "the number of domains"),
    key("strategy.given", "whether the domain of every row is known"),
    key("strategy.hidden", "the hidden layers of the student"),
    key("strategy.layers", "in FedCG the layers that have a branch for every domain, in FedALA how many are mixed"),
    key("strategy.agnostic", "whether layers have a part that all domains share"),
    key("strategy.adjacency-start", "what the graph of domains starts from"),
    key("strategy.graphs", "whether every layer has a graph of its own"),
    key("strategy.learn-lambda", "whether the strength of the graph is trained"),
    key("strategy.passes", "the propagations along the graph"),
    key("strategy.projection", "the projection of the graph convolution"),
    key("strategy.projection.bottleneck", "the width of the projection of the graph convolution"),
    key("strategy.refresh", "the rounds after which the student replaces the teacher"),
    key("strategy.sigma", "the activation of the graph convolution"),
    key("strategy.student-rate", "the learning rate of the student"),
    key("strategy.distance", "the weight of the distance to the class in the local objective"),
    key("strategy.draws", "the representations drawn for a row"),
    key("strategy.length", "the weight of the length of representations in the local objective"),
];

/// Returns what is known of the key at a path in which the names of members are `*`; `None` for a key that has
/// no words.
pub(crate) fn known(path: &str) -> Option<&'static Key> {
    let path = path.replace(".then.", ".");
    KEYS.iter().find(|key| match key.path.strip_suffix(".**") {
        Some(table) => path
            .strip_prefix(table)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.')),
        None => key.path == path,
    })
}

impl Weakens {
    /// Returns whether `after` protects less than `before`.
    pub(crate) fn holds(self, before: Option<&Canonical>, after: Option<&Canonical>) -> bool {
        match self {
            Self::Never => false,
            Self::Changed => before != after,
            Self::Raised => match (number(before), number(after)) {
                (Some(before), Some(after)) => after > before,
                (before, after) => before.is_some() && after.is_none(),
            },
            Self::Lowered => match (number(before), number(after)) {
                (Some(before), Some(after)) => after < before,
                _ => false,
            },
            Self::Ranked(rank) => rank(after) > rank(before),
        }
    }
}

fn number(value: Option<&Canonical>) -> Option<f64> {
    match value? {
        Canonical::Whole(number) => Some(*number as f64),
        Canonical::Float(bits) => Some(f64::from_bits(*bits)),
        _ => None,
    }
}

fn text(value: Option<&Canonical>) -> &str {
    match value {
        Some(Canonical::Text(text)) => text,
        _ => "",
    }
}

fn switched_on(value: Option<&Canonical>) -> u64 {
    u64::from(value == Some(&Canonical::Bool(true)))
}

/// Masked sums above single models.
fn seen(value: Option<&Canonical>) -> u64 {
    match text(value) {
        "differential-privacy" => 0,
        "secure-aggregation" => 1,
        _ => 2,
    }
}

/// Full above committees, larger ones above smaller ones, those above nobody.
fn verification(value: Option<&Canonical>) -> u64 {
    let word = text(value);
    let committee = word.strip_prefix("committee-");
    match committee.map(str::parse::<u64>) {
        _ if word == "full" => 0,
        Some(Ok(size)) => u64::MAX - 1 - size,
        _ => u64::MAX,
    }
}

fn names(value: Option<&Canonical>) -> u64 {
    u64::from(text(value) != "removed")
}

fn status(value: Option<&Canonical>) -> u64 {
    u64::from(text(value) == "members")
}

/// Returns how long a member that does not fail may lead at a stretch.
fn rotation(value: Option<&Canonical>) -> u64 {
    let word = text(value);
    let rounds = word.strip_prefix("every-");
    let rounds = rounds.and_then(|rest| rest.strip_suffix("-rounds"));
    match (word, rounds.map(str::parse::<u64>)) {
        ("every-round" | "reliability", _) => 1,
        ("on-failure", _) => u64::MAX - 1,
        (_, Some(Ok(rounds))) => rounds,
        _ => u64::MAX,
    }
}

/// Returns whether the rule is the mean, which it is where none is named.
fn aggregation(value: Option<&Canonical>) -> u64 {
    u64::from(matches!(text(value), "" | "mean"))
}

/// Returns whether rows are counted, as they are where nothing is said.
fn weight(value: Option<&Canonical>) -> u64 {
    u64::from(text(value) != "equal")
}
