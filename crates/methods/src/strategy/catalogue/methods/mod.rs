//! The list of all methods, one declaration each.
//!
//! To add a method, write it in a file of its own, and declare it here: its options type, name,
//! description, paper, whether an `aggregation` rule can take the place of its mean, what it sees of
//! single silos, whether differentially private sums suffice for it, and how it is built. The enum [`Method`],
//! [`STRATEGIES`], reading and writing of configurations, the command line, and the modes of privacy that
//! it goes with follow from the declaration.

use serde::{Deserialize, Serialize};

use super::StrategyInfo;
use super::sees::{NoisedUse, StrategyView};
use crate::nearest;
use crate::strategy::options::{Built, MethodSetting};
use crate::strategy::server::one_model::fedopt::SecondMoment;
use crate::strategy::{
    Afl, Apfl, Averaging, Cfl, CsRcflOptions, Custom, Ditto, Drfa, FedAla, FedAvgOptions, FedCg,
    FedCollab, FedDyn, FedFa, FedNova, FedOpt, FedProx, FedRep, FedSr, Fesem, Flsc, Hcct, HcctE,
    Hierarchical, Ifca, LAST_LAYER, LocalOptions, MaxFl, NORM_LAYERS, PFedGraph, PFedMe,
    RobustLocal, Scaffold, StrategyError, Superquantile, Tfl,
};

macro_rules! methods {
    ($(
        $variant:ident($options:ty) {
            name: $name:literal,
            about: $about:literal,
            paper: $paper:literal,
            takes_rule: $takes_rule:literal,
            sees: $sees:expr,
            noised: $noised:expr,
            build: $build:expr,
        }
    )*) => {
        /// A method and its own options; all have defaults.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(tag = "name")]
        pub enum Method {
            $(
                #[doc = $about]
                #[serde(rename = $name)]
                $variant($options),
            )*
        }

        /// All strategies.
        pub const STRATEGIES: &[StrategyInfo] = &[$(
            StrategyInfo {
                name: $name,
                about: $about,
                paper: $paper,
            },
        )*];

        impl Method {
            /// Name of the method, as in [`STRATEGIES`].
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)*
                }
            }

            /// Returns whether another rule can take the place of its mean.
            pub(crate) fn takes_rule(&self) -> bool {
                match self {
                    $(Self::$variant(_) => $takes_rule,)*
                }
            }

            /// Returns what it sees of the silos of a round.
            pub fn sees(&self) -> StrategyView {
                match self {
                    $(Self::$variant(options) => sees_with(options, $sees),)*
                }
            }

            /// Returns whether differentially private sums suffice for it.
            pub fn noised(&self) -> NoisedUse {
                match self {
                    $(Self::$variant(_) => $noised,)*
                }
            }

            /// The method without what goes around every method.
            pub(crate) fn build(&self, setting: MethodSetting) -> Result<Built, StrategyError> {
                match self {
                    $(Self::$variant(options) => build_with(options, setting, $build),)*
                }
            }
        }
    };
}

/// Calls what a declaration names to build its method.
fn build_with<O, B: Into<Built>>(
    options: &O,
    setting: MethodSetting,
    build: impl FnOnce(&O, MethodSetting) -> Result<B, StrategyError>,
) -> Result<Built, StrategyError> {
    build(options, setting).map(Into::into)
}

/// Calls what a declaration says of what its method sees.
fn sees_with<O>(options: &O, sees: impl FnOnce(&O) -> StrategyView) -> StrategyView {
    sees(options)
}

impl Method {
    /// The method of that name, with defaults for its options.
    ///
    /// # Errors
    /// [`StrategyError::Unknown`].
    pub fn named(name: &str) -> Result<Self, StrategyError> {
        let only_name = serde_json::json!({ "name": name });
        Self::deserialize(only_name).map_err(|_| {
            let known: Vec<_> = STRATEGIES.iter().map(|strategy| strategy.name).collect();
            StrategyError::Unknown {
                name: name.into(),
                meant: nearest(name, known.iter().copied()),
                known: known.join(", "),
            }
        })
    }

    /// The method of that name as new scenarios and agreements have it: with defaults for its options, but for
    /// [those that are written](drafted_options).
    ///
    /// # Errors
    /// [`StrategyError::Unknown`].
    pub fn drafted(name: &str) -> Result<Self, StrategyError> {
        let plain = Self::named(name)?;
        let mut table = serde_json::json!({ "name": name });
        for (option, value) in drafted_options(name) {
            table[*option] = (*value).into();
        }
        Ok(Self::deserialize(table).unwrap_or(plain))
    }
}

/// Options that are written wherever a method is chosen by its name alone, because there is something
/// better than their defaults. The defaults stay: an agreement that was signed without the option
/// means them.
pub fn drafted_options(name: &str) -> &'static [(&'static str, &'static str)] {
    match name {
        "hcct" | "hcct-e" | "hcct-p" => &[("groups", "auto")],
        _ => &[],
    }
}

methods! {
    FedAvg(FedAvgOptions) {
        name: "fedavg",
        about: "one model for all members, the mean of their models",
        paper: "McMahan et al. 2017, Communication-Efficient Learning of Deep Networks",
        takes_rule: true,
        sees: |options| StrategyView::Sums(options.weight),
        noised: NoisedUse::Steps,
        build: FedAvgOptions::build,
    }
    Local(LocalOptions) {
        name: "local",
        about: "a model for every silo, trained alone; for comparison",
        paper: "none",
        takes_rule: false,
        sees: |_| StrategyView::SingleResults,
        noised: NoisedUse::NoSum,
        build: LocalOptions::build,
    }
    CsRcfl(CsRcflOptions) {
        name: "cs-rcfl",
        about: "coalitions of silos whose models do well on each other's data",
        paper: "Konti et al. 2024, Distributionally Robust Clustered Federated Learning",
        takes_rule: true,
        sees: |_| StrategyView::CrossEvaluation,
        noised: NoisedUse::SingleSilos,
        build: CsRcflOptions::build,
    }
    FedProx(FedProx) {
        name: "fedprox",
        about: "one model; a proximal term keeps local training near it",
        paper: "Li et al. 2020, Federated Optimization in Heterogeneous Networks",
        takes_rule: true,
        sees: |options| StrategyView::Sums(options.weight),
        noised: NoisedUse::NoTerm,
        build: FedProx::build,
    }
    FedAdam(FedOpt) {
        name: "fedadam",
        about: "one model; Adam makes the step from the mean change of a round",
        paper: "Reddi et al. 2021, Adaptive Federated Optimization",
        takes_rule: true,
        sees: |options| StrategyView::Sums(options.weight),
        noised: NoisedUse::Steps,
        build: |options, setting| options.build("fedadam", SecondMoment::Adam, setting),
    }
    FedYogi(FedOpt) {
        name: "fedyogi",
        about: "one model; Yogi makes the step from the mean change of a round",
        paper: "Reddi et al. 2021, Adaptive Federated Optimization",
        takes_rule: true,
        sees: |options| StrategyView::Sums(options.weight),
        noised: NoisedUse::Steps,
        build: |options, setting| options.build("fedyogi", SecondMoment::Yogi, setting),
    }
    FedAdagrad(FedOpt) {
        name: "fedadagrad",
        about: "one model; Adagrad makes the step from the mean change of a round",
        paper: "Reddi et al. 2021, Adaptive Federated Optimization",
        takes_rule: true,
        sees: |options| StrategyView::Sums(options.weight),
        noised: NoisedUse::Steps,
        build: |options, setting| options.build("fedadagrad", SecondMoment::Adagrad, setting),
    }
    Scaffold(Scaffold) {
        name: "scaffold",
        about: "one model; control variates correct the drift of silos that differ",
        paper: "Karimireddy et al. 2020, Stochastic Controlled Averaging (option II)",
        takes_rule: false,
        sees: |_| StrategyView::MoreVectors,
        noised: NoisedUse::KeptNumbers,
        build: Scaffold::build,
    }
    FedNova(FedNova) {
        name: "fednova",
        about: "one model; changes count by step, so that silos with many rows do not outpace others",
        paper: "Wang et al. 2020, Tackling the Objective Inconsistency Problem",
        takes_rule: false,
        sees: |_| StrategyView::SingleNumbers,
        noised: NoisedUse::EvenSteps,
        build: FedNova::build,
    }
    FedDyn(FedDyn) {
        name: "feddyn",
        about: "one model; a regulariser of each silo's own removes the drift of silos that differ",
        paper: "Acar et al. 2021, Federated Learning Based on Dynamic Regularization",
        takes_rule: false,
        sees: |_| StrategyView::Counts,
        noised: NoisedUse::KeptNumbers,
        build: FedDyn::build,
    }
    FedPer(Averaging) {
        name: "fedper",
        about: "one model except for the last layer, which stays with each silo",
        paper: "Arivazhagan et al. 2019, Federated Learning with Personalization Layers",
        takes_rule: true,
        sees: |options| StrategyView::Sums(options.weight),
        noised: NoisedUse::OwnTraining,
        build: |options, setting| {
            Ok(Built::from(options.build(setting)?).with_personal(LAST_LAYER))
        },
    }
    FedRep(FedRep) {
        name: "fedrep",
        about: "as fedper; every silo trains its last layer first, then the shared layers",
        paper: "Collins et al. 2021, Exploiting Shared Representations",
        takes_rule: true,
        sees: |options| StrategyView::Sums(options.weight),
        noised: NoisedUse::OwnTraining,
        build: FedRep::build,
    }
    FedBn(Averaging) {
        name: "fedbn",
        about: "one model except for the normalisation layers, which stay with each silo",
        paper: "Li et al. 2021, Federated Learning on Non-IID Features via Local Batch Normalization",
        takes_rule: true,
        sees: |options| StrategyView::Sums(options.weight),
        noised: NoisedUse::OwnTraining,
        build: |options, setting| {
            Ok(Built::from(options.build(setting)?).with_personal(NORM_LAYERS))
        },
    }
    Ditto(Ditto) {
        name: "ditto",
        about: "one model, and at every silo a model of its own that stays near it",
        paper: "Li et al. 2021, Fair and Robust Federated Learning Through Personalization",
        takes_rule: true,
        sees: |options| StrategyView::Sums(options.weight),
        noised: NoisedUse::OwnTraining,
        build: Ditto::build,
    }
    PFedMe(PFedMe) {
        name: "pfedme",
        about: "one model that silos get near from their local models, which a proximal term holds to it",
        paper: "Dinh et al. 2020, Personalized Federated Learning with Moreau Envelopes",
        takes_rule: true,
        sees: |options| StrategyView::Sums(options.weight),
        noised: NoisedUse::OwnTraining,
        build: PFedMe::build,
    }
    Apfl(Apfl) {
        name: "apfl",
        about: "one model, and at every silo a mixture of it with a model of its own",
        paper: "Deng et al. 2020, Adaptive Personalized Federated Learning",
        takes_rule: true,
        sees: |options| StrategyView::Sums(options.weight),
        noised: NoisedUse::OwnTraining,
        build: Apfl::build,
    }
    FedAla(FedAla) {
        name: "fedala",
        about: "one model; silos learn how much of each upper-layer weight to take from it",
        paper: "Zhang et al. 2023, FedALA: Adaptive Local Aggregation",
        takes_rule: true,
        sees: |options| StrategyView::Sums(options.weight),
        noised: NoisedUse::OwnTraining,
        build: FedAla::build,
    }
    Hcct(Hcct) {
        name: "hcct",
        about: "groups of silos whose updates point in one direction, weighed against more data",
        paper: "Sun et al. 2024, How to Collaborate: Towards Maximizing the Generalization Performance",
        takes_rule: true,
        sees: |_| StrategyView::SingleModels,
        noised: NoisedUse::SingleSilos,
        build: |options, setting| options.build("hcct", setting),
    }
    HcctE(HcctE) {
        name: "hcct-e",
        about: "as hcct, compared by the one layer in which silos differ most",
        paper: "Sun et al. 2024, How to Collaborate: Towards Maximizing the Generalization Performance",
        takes_rule: true,
        sees: |_| StrategyView::SingleModels,
        noised: NoisedUse::SingleSilos,
        build: HcctE::build,
    }
    HcctP(Hcct) {
        name: "hcct-p",
        about: "hcct of all but the last layer, which stays with each silo",
        paper: "Sun et al. 2024, How to Collaborate: Towards Maximizing the Generalization Performance",
        takes_rule: true,
        sees: |_| StrategyView::SingleModels,
        noised: NoisedUse::SingleSilos,
        build: |options, setting| {
            Ok(Built::from(options.build("hcct-p", setting)?).with_personal(LAST_LAYER))
        },
    }
    RobustLocal(RobustLocal) {
        name: "robust-local",
        about: "a model for every silo, fitted alone with the least robust loss",
        paper: "Konti et al. 2024, Distributionally Robust Clustered Federated Learning",
        takes_rule: false,
        sees: |_| StrategyView::SingleResults,
        noised: NoisedUse::NoSum,
        build: RobustLocal::build,
    }
    Tfl(Tfl) {
        name: "tfl",
        about: "one model for the worst mixture of members, near a prior from their graph",
        paper: "Ma et al. 2024, Topology-aware Federated Learning",
        takes_rule: false,
        sees: |_| StrategyView::SingleNumbers,
        noised: NoisedUse::SingleSilos,
        build: Tfl::build,
    }
    Drfa(Drfa) {
        name: "drfa",
        about: "one model for the worst mixture of members; members are drawn by their weights",
        paper: "Deng et al. 2020, Distributionally Robust Federated Averaging",
        takes_rule: false,
        sees: |_| StrategyView::SingleNumbers,
        noised: NoisedUse::SingleSilos,
        build: Drfa::build,
    }
    Afl(Afl) {
        name: "afl",
        about: "one model for the worst mixture of members; all members train in every round",
        paper: "Mohri et al. 2019, Agnostic Federated Learning",
        takes_rule: false,
        sees: |_| StrategyView::SingleNumbers,
        noised: NoisedUse::SingleSilos,
        build: Afl::build,
    }
    MaxFl(MaxFl) {
        name: "maxfl",
        about: "one model that as many silos as possible prefer to their own",
        paper: "Cho et al. 2022, Maximizing Global Model Appeal in Federated Learning",
        takes_rule: false,
        sees: |_| StrategyView::SingleNumbers,
        noised: NoisedUse::SingleSilos,
        build: MaxFl::build,
    }
    FedFa(FedFa) {
        name: "fedfa",
        about: "one model; silos on whose data it is poor weigh more",
        paper: "Huang et al. 2020, Fairness and Accuracy in Horizontal Federated Learning",
        takes_rule: false,
        sees: |_| StrategyView::SingleNumbers,
        noised: NoisedUse::SingleSilos,
        build: FedFa::build,
    }
    Superquantile(Superquantile) {
        name: "superquantile",
        about: "one model, for the silos with the largest losses",
        paper: "Pillutla et al. 2023, Federated Learning with Superquantile Aggregation for Heterogeneous Data",
        takes_rule: false,
        sees: |_| StrategyView::SingleNumbers,
        noised: NoisedUse::SingleSilos,
        build: Superquantile::build,
    }
    Ifca(Ifca) {
        name: "ifca",
        about: "several models; every silo trains the one that does best on its data",
        paper: "Ghosh et al. 2020, An Efficient Framework for Clustered Federated Learning",
        takes_rule: true,
        sees: |_| StrategyView::SingleNumbers,
        noised: NoisedUse::SingleSilos,
        build: Ifca::build,
    }
    Flsc(Flsc) {
        name: "flsc",
        about: "as ifca; every silo trains the mean of the few models that do best",
        paper: "Li et al. 2021, Federated Learning with Soft Clustering",
        takes_rule: true,
        sees: |_| StrategyView::SingleNumbers,
        noised: NoisedUse::SingleSilos,
        build: Flsc::build,
    }
    Fesem(Fesem) {
        name: "fesem",
        about: "several models; every silo belongs to the one nearest to the model it trained",
        paper: "Xie et al. 2021, Multi-Center Federated Learning",
        takes_rule: true,
        sees: |_| StrategyView::SingleModels,
        noised: NoisedUse::SingleSilos,
        build: Fesem::build,
    }
    Cfl(Cfl) {
        name: "cfl",
        about: "one model, split in two where updates diverge once it has converged",
        paper: "Sattler et al. 2021, Clustered Federated Learning",
        takes_rule: true,
        sees: |_| StrategyView::SingleModels,
        noised: NoisedUse::SingleSilos,
        build: Cfl::build,
    }
    FedCollab(FedCollab) {
        name: "fedcollab",
        about: "coalitions by how much data silos have and how far apart the data are",
        paper: "Bao et al. 2023, Optimizing the Collaboration Structure in Cross-Silo Federated Learning",
        takes_rule: true,
        sees: |_| StrategyView::SingleModels,
        noised: NoisedUse::SingleSilos,
        build: FedCollab::build,
    }
    PFedGraph(PFedGraph) {
        name: "pfedgraph",
        about: "a model for every silo, the mean of models similar to its own",
        paper: "Ye et al. 2023, Personalized Federated Learning with Inferred Collaboration Graphs",
        takes_rule: false,
        sees: |_| StrategyView::SingleModels,
        noised: NoisedUse::SingleSilos,
        build: PFedGraph::build,
    }
    FedCg(FedCg) {
        name: "fedcg",
        about: "one model with branches for domains of rows, which learn from their neighbours",
        paper: "Caldarola et al. 2021, Cluster-driven Graph Federated Learning over Multiple Domains",
        takes_rule: true,
        sees: |_| StrategyView::MoreVectors,
        noised: NoisedUse::KeptNumbers,
        build: FedCg::build,
    }
    FedSr(FedSr) {
        name: "fedsr",
        about: "one model with short representations that are similar within a class",
        paper: "Nguyen et al. 2022, FedSR: A Simple and Effective Domain Generalization Method",
        takes_rule: true,
        sees: |_| StrategyView::MoreVectors,
        noised: NoisedUse::KeptNumbers,
        build: FedSr::build,
    }
    Hierarchical(Hierarchical) {
        name: "hierarchical",
        about: "a linear model for every silo, shrunken towards a common one as far as silos are alike",
        paper: "Laird & Ware 1982, Random-Effects Models for Longitudinal Data",
        takes_rule: false,
        sees: |options: &Hierarchical| match options.exponent {
            Some(_) => StrategyView::Statistics,
            None => StrategyView::FineSums,
        },
        noised: NoisedUse::NoBound,
        build: Hierarchical::build,
    }
    Custom(Custom) {
        name: "custom",
        about: "models combined by coefficients that a rule of one's own gives, as of rota.Strategy in Python",
        paper: "none",
        takes_rule: false,
        sees: |_| StrategyView::SingleCoefficients,
        noised: NoisedUse::SingleSilos,
        build: Custom::build,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, unreachable_pub)]
mod added;
