//! Rules that can be broken on purpose, to prove that the tests notice. They take effect only in builds
//! with the feature `mutations`, which only tests turn on.
//!
//! One member breaks a rule by `Config::breaking`. All members and
//! functions of a process break the one that the environment variable `ROTA_MUTATION` names, so
//! that the same test program runs with every rule broken in turn: `just mutants`.

/// Defines the mutations: for each clause of `docs/protocol.md` their names and what they break.
macro_rules! mutations {
    ($($clause:literal: [$($name:ident $what:literal)*])*) => {
        /// A rule that can be broken.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Mutation {
            $($(#[doc = $what] $name,)*)*
        }

        impl Mutation {
            /// All of them, by clause.
            pub const ALL: &'static [Self] = &[$($(Self::$name,)*)*];

            /// The rule, property or section of `docs/protocol.md` that it breaks.
            pub fn clause(self) -> &'static str {
                match self {
                    $($(Self::$name => $clause,)*)*
                }
            }

            /// What is wrong then, in one clause of a sentence.
            pub fn what(self) -> &'static str {
                match self {
                    $($(Self::$name => $what,)*)*
                }
            }
        }
    };
}

mutations! {
    "R1": [
        NotarizeTwice "Notarize is voted for every proposal of a view"
        BlockMisplaced "a block may name another view or another epoch than its proposal"
        AnyParent "a round may begin at any block"
        RoundFromNotarised "a round may begin at a block that is only notarised"
        SkippedWithoutProof "a proposal needs no nullification of the views that it skips"
        AnyRound "a block may name another round than the one under way"
        AnyPlan "a block may name another plan"
        InclusionMissing "one inclusion fewer than entries is enough"
        UninvitedSigner "members that the plan does not name may sign for entries"
        AnyNames "names in a Sheet need not be those of the signers"
        SheetOfAnyRows "the entries of a Sheet may claim more rows than its signers declared"
        BundleOfAnyRows "the entries of a Bundle may claim more rows than the participants declared"
        FewestIgnored "a Sheet may have fewer entries than the fewest"
        EnoughIgnored "entries are enough before patience is over"
        ReceiptIgnored "a Sheet without the own entry is accepted in spite of a Receipt"
        ForgedScore "the lead changes a score, and no member checks its own row"
        SignsWithoutEntry "a member signs for a Sheet without its own entry"
        SignsWithoutModels "a member signs for a Sheet before it holds the models"
        DecisionUnchecked "the decision is accepted without its check"
        OutcomeUnchecked "the claimed outcome may differ from the computed one"
        EmptyUnproven "an empty block needs no notarisation of its parent"
    ]
    "R2": [
        FinalizeAfterNullify "Finalize is voted after Nullify"
        NullifyAfterFinalize "Nullify is voted after Finalize"
        ContradictionTolerated "two Proposals of one view are no reason for Nullify"
        RefusalWithoutVote "a Proposal that breaks a rule is refused without Nullify"
        SilenceTolerated "a silent lead is waited for"
        SlownessTolerated "a view has no timeout"
        OldProgressCounts "a Progress message that was seen before counts as progress"
        GivingUpIgnored "the lead's own Nullify is no reason for Nullify"
    ]
    "R3": [
        FinalizeWithheld "a notarisation is not answered with Finalize"
        NullifiedViewGoesOn "a nullified view is not left"
        EarlierViewEntered "a certificate of an earlier view leads back"
        CertificateUnpublished "certificates are not published"
        LateVoteUnanswered "late votes are not answered with the certificate"
        NoEmptyBlock "no empty block is proposed on a notarised one"
        PhasesStayShort "D does not double while views fail"
    ]
    "R4": [
        NotarisedAdopted "an outcome is adopted when it is notarised"
        AdoptedAgain "an outcome is adopted twice"
    ]
    "R5": [
        VoteNotDurable "Notarize and Finalize are sent before they are durable"
        NullifyNotDurable "Nullify is sent before it is durable"
        ProposalNotDurable "a Proposal is sent before it is durable"
        ContributionNotDurable "a Contribution is sent before it is durable"
        LossIgnored "a member without its journal takes part at once"
        KeyUnchecked "a new member does not ask whether its key was used"
        AskingForgotten "a new member that was stopped while it asked takes part at once"
        KeyUseIgnored "a reminder of an own signature changes nothing"
        OutdatedJournalTrusted "a member goes on signing when it sees that its journal is an older copy"
        BackTooEarly "a member without its journal takes part again at the view that others have reached"
        BackInTheSameRound "a member without its journal contributes again to a masked round that was under way"
        BackWithOneAnswer "a member without its journal needs one answer"
    ]
    "Restore": [
        VotesForgotten "a restart forgets votes"
        ProposalForgotten "a restart forgets proposals"
        ContributionForgotten "a restart forgets the contribution"
        AdoptionForgotten "a restart forgets what was adopted"
        CertificatesForgotten "a restart forgets how views ended"
        FinalForgotten "a restart forgets final blocks"
        StandingForgotten "a restart forgets a standing"
    ]
    "Closing the set": [
        ClosesWithTooFew "the set is closed with fewer than the fewest entries"
        ClosesAtOnce "slow members are not waited for"
        NothingUnsaid "a member whose training failed does not say so to the others"
        NothingIgnored "a member that said that it has nothing is waited for"
        LeavesOutEndlessly "members are left out any number of times in a view"
        UninvitedContribution "members that the plan does not name may contribute"
        ContributionOfAnyPlan "a contribution to another plan is admitted"
        ModelOfAnySize "a model of another size is admitted"
        ContributionOfAnyRows "a contribution may claim more rows than its author declared"
        BadModelAdmitted "a model that failed its checks is admitted"
    ]
    "Taking over": [
        TakeOverUncovered "a Sheet is taken over against a Receipt of this view"
        TakeOverWithoutModels "a Sheet is taken over without its models"
    ]
    "Leads": [
        AnyoneLeads "messages of a lead count from any member"
        FormerLeadProposes "a member that led the view before may propose a change in it"
    ]
    "Votes and certificates": [
        QuorumMinusOne "certificates are made of one vote too few"
        AnyNumberOfVotes "a certificate may have any number of votes"
        VotersRepeated "a member may vote several times in a certificate"
        VotesUnverified "the votes in a certificate are not verified"
        KnownByVerdict "other votes for a known verdict are not verified"
    ]
    "Verification levels": [
        AuditorsIgnored "a notarisation counts without its auditors"
        AuditorBelieves "auditors check nothing"
        AuditorsFixed "auditors are drawn once for all views after a block"
        OutcomeNotKept "a member that is no auditor votes before it has the outcome"
        BelieverClaimsAll "a member that is no auditor says that it checked everything"
    ]
    "Catching up": [
        UnaskedAnswer "an answer counts without its question"
        ProofOfAnother "the proof in an answer may be of another block"
        LinksUnchecked "the blocks in an answer need not be a chain"
        ReminderUnverified "the signature of a reminder is not verified"
    ]
    "Evidence": [
        FaultUnreported "evidence is neither published nor reported"
        ConflictUnchecked "evidence may be two messages that an honest member signs"
        EvidenceUnverified "the signatures of evidence are not verified"
        EvidenceOfTwoEpochs "evidence may be messages of two epochs"
        EvidenceOfAnyFederation "evidence may be messages of other federations"
    ]
    "Epochs": [
        ApprovalsMinusOne "a change needs one approval fewer"
        ApprovalsRepeated "a member may approve several times"
        ApprovalsUnverified "the signatures of approvals are not verified"
        LeaverChosen "others may decide that a member leaves by itself"
        ProtectionLeft "one of four may leave by itself"
        AnyCheckpoint "a change may go on from another round"
        FinalRoundsCut "a change may cut rounds that are final"
        StartChanged "a change may begin from another start"
        FormatLowered "a change may lower the format"
        FormatUnspoken "a member votes for a format that it does not speak"
        PassageUnproven "a Passage needs no final certificate"
        PassageOfAnotherEpoch "the empty blocks of a Passage may be of another epoch"
        PassageNotEmpty "the blocks of a Passage after the change need not be empty"
        BlockOfAnotherEpoch "an epoch may begin with a block of another epoch"
        FormatRaisedLeaving "a member that leaves by itself may raise the format"
        AnyoneStolen "keys that stay, or of nobody, may be named as stolen"
        NewKeyUnheard "a change with a new key is approved before its node has answered"
        ObjectionIgnored "a change that this node cannot follow is approved, proposed and voted for"
        WithdrawalIgnored "an approval counts after it was withdrawn"
        OldApprovalCounts "an earlier word about an amendment takes the place of a later one"
        ApprovalsNeverFull "any number of approvals of one member are kept"
        ChosenForEver "an amendment stays chosen when it has too few approvals left"
        AlikeApproved "a member approves every amendment with the text of one that it approves"
        UnspokenApproved "an amendment in a format that is not spoken is approved"
    ]
    "Recovery": [
        StandingsMissing "not all that remain have to sign"
        StandingsUnverified "the signatures of standings are not verified"
        AnyHead "the blocks of a recovery need not lead to the newest final one"
        ActsAfterStanding "a member that signed a standing goes on in the epoch"
        LostFollows "a member that was declared lost follows"
        StandingsContradict "standings may name two outcomes of one round"
        HeadOfAnotherEpoch "the blocks of a recovery may be of another epoch"
        HeadWithChanges "the blocks of a recovery may hold a change"
        VotesAfterStanding "votes under way are counted after a standing"
        OldStandingCounts "an earlier standing takes the place of a later one"
        ConfirmationsMissing "not all that remain have to confirm"
        ConfirmationsUnverified "the signatures of confirmations are not verified"
        ConfirmsAgain "a member confirms another set before one of the first has given it up"
        ConfirmationForgotten "a restart forgets a confirmation"
    ]
    "Envelopes": [
        AnySize "messages of any size are opened"
        AnyFederation "messages of other federations are opened"
        AnyEpoch "messages of other epochs are opened"
        AnyFormat "messages of other formats are opened"
        AnyHeader "a header may have a round or a view where its kind has none"
        SenderUnused "a message that proves itself may name a sender"
        CertificateMislabelled "a certificate may be of another view than its header"
        KindMislabelled "a body may be of another kind than its header"
        SignatureUnchecked "the sender's signature is not verified"
        InclusionsUnverified "the signatures of inclusions are not verified"
        InclusionsRepeated "a member may sign several times for a Sheet"
    ]
    "M2": [
        AnyList "a list may follow any other list of its view"
        FewerAuthors "a noised sum may have two authors"
        KeysUnverified "the signatures of the keys in a list are not verified"
        ForeignKeysAccepted "a list may have other keys for a member than it has signed"
    ]
    "M3": [
        AbsentDropped "a sum is opened without a member of its group that is not ready"
        GroupTooSmall "a group may have one author more than there are colluders"
        HeavyAuthor "an author may have more than half of the weight of its group"
        WeightOfZero "an author may have no weight"
        SuspendedSummed "a sum of a suspended group is opened"
        AnyCircle "a member answers sums of other members than the first one that it answered"
        ShownWithoutConsent "groups change, and show updates, without the approval of all concerned"
        CircleNotDurable "the first sum that a member answers is sent before it is durable"
        CircleForgotten "a restart forgets which sum a member has answered"
    ]
    "M4": [
        AnyAuthors "a sheet need not have the authors of the sums of its list"
        InclusionWithoutVectors "a member signs for masked vectors before it has and has checked them"
        VectorsUnchecked "a masked round is voted for before its vectors are here and checked"
        AnyState "a masked round may start from another state than the certified outcome"
        AnyReady "a masked round may name other ready members than its list"
    ]
    "M5": [
        UnmaskedEarly "shares of masks are given away for a round that is only notarised"
        UnmaskedWhenShown "shares of masks are given away for a round that is only proposed"
        OneShareMore "one share more than t is asked for"
        OneShareFewer "one share fewer than t is enough"
    ]
    "M6": [
        OutcomeVoteNotDurable "a vote for an outcome is sent before it is durable"
        OutcomeVoteForgotten "a restart forgets the vote for an outcome"
        OutcomeWithoutQuorum "one vote is enough for an outcome"
        ChangeBeforeOutcome "a change may follow a round whose outcome is not certified"
    ]
    "S10": [
        ContributionPublished "a contribution goes to all members"
        ScoresPublished "scores go to all members"
        ModelGivenEarly "a model is given to any member before the Bundle"
    ]
}

impl Mutation {
    /// The environment variable that names the rule to break.
    pub const VARIABLE: &'static str = "ROTA_MUTATION";

    /// The mutation of that name.
    pub fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|mutation| format!("{mutation:?}") == name)
    }
}

/// Whether a rule is broken everywhere in this process.
#[cfg(feature = "mutations")]
pub(crate) fn broken(rule: Mutation) -> bool {
    static EVERYWHERE: std::sync::OnceLock<Option<Mutation>> = std::sync::OnceLock::new();
    let read = || {
        let name = std::env::var(Mutation::VARIABLE).ok()?;
        let known = Mutation::named(&name);
        assert!(
            known.is_some(),
            "{}: there is no mutation {name:?}",
            Mutation::VARIABLE
        );
        known
    };
    *EVERYWHERE.get_or_init(read) == Some(rule)
}

/// Whether a rule is broken everywhere in this process.
#[cfg(not(feature = "mutations"))]
pub(crate) fn broken(_: Mutation) -> bool {
    false
}
