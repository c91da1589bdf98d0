//! Tables of this example: the methods that are compared.

/// Methods side by side on some cases.
pub(crate) struct MethodTable {
    pub(crate) name: &'static str,
    pub(crate) cases: &'static [&'static str],
    pub(crate) rounds: u64,
    /// Epochs of a round, unless a method states its own.
    pub(crate) epochs: u32,
    /// Learning rate.
    pub(crate) rate: f64,
    /// Label and strategy; beside its options a strategy may have `rounds`, `epochs` and `radius`.
    pub(crate) methods: &'static [(&'static str, &'static str)],
}

pub(crate) const TABLES: &[MethodTable] = &[
    // Enough rounds for silos alone to converge.
    MethodTable {
        name: "planted",
        cases: &[],
        rounds: 20,
        epochs: 10,
        rate: 0.005,
        methods: &[],
    },
    MethodTable {
        name: "auto-linear",
        cases: &["linear", "logistic", "diabetes"],
        rounds: 9,
        epochs: 10,
        rate: 0.01,
        methods: &[
            ("local", r#"{"name":"local"}"#),
            (
                "fedavg, equal weights",
                r#"{"name":"fedavg","weight":"equal"}"#,
            ),
            ("cs-rcfl 2", r#"{"name":"cs-rcfl","coalitions":2}"#),
            ("cs-rcfl 4", r#"{"name":"cs-rcfl","coalitions":4}"#),
            ("cs-rcfl auto", r#"{"name":"cs-rcfl","coalitions":"auto"}"#),
            (
                "local, exact",
                r#"{"name":"local","fit":"exact","rounds":3}"#,
            ),
            (
                "cs-rcfl 1, exact",
                r#"{"name":"cs-rcfl","coalitions":1,"fit":"exact","rounds":3}"#,
            ),
            (
                "cs-rcfl 2, exact",
                r#"{"name":"cs-rcfl","coalitions":2,"fit":"exact","rounds":3}"#,
            ),
            (
                "cs-rcfl 4, exact",
                r#"{"name":"cs-rcfl","coalitions":4,"fit":"exact","rounds":3}"#,
            ),
            (
                "cs-rcfl auto, exact",
                r#"{"name":"cs-rcfl","coalitions":"auto","fit":"exact","rounds":3}"#,
            ),
        ],
    },
    MethodTable {
        name: "auto-digits",
        cases: &["digits", "digits-iid", "digits-own"],
        rounds: 20,
        epochs: 5,
        rate: 0.02,
        methods: &[
            ("local", r#"{"name":"local"}"#),
            (
                "fedavg, equal weights",
                r#"{"name":"fedavg","weight":"equal"}"#,
            ),
            ("cs-rcfl 2", r#"{"name":"cs-rcfl","coalitions":2}"#),
            ("cs-rcfl 3", r#"{"name":"cs-rcfl","coalitions":3}"#),
            ("cs-rcfl auto", r#"{"name":"cs-rcfl","coalitions":"auto"}"#),
            (
                "cs-rcfl auto, warm-up 2",
                r#"{"name":"cs-rcfl","coalitions":"auto","warm-up":2}"#,
            ),
            (
                "cs-rcfl auto, warm-up 4",
                r#"{"name":"cs-rcfl","coalitions":"auto","warm-up":4}"#,
            ),
        ],
    },
    MethodTable {
        name: "hcct",
        cases: &["digits", "digits-iid", "digits-own"],
        rounds: 20,
        epochs: 5,
        rate: 0.02,
        methods: &[
            ("local", r#"{"name":"local"}"#),
            ("fedavg", r#"{"name":"fedavg"}"#),
            ("fesem 3", r#"{"name":"fesem","models":3}"#),
            ("hcct", r#"{"name":"hcct"}"#),
            ("auto", r#"{"name":"hcct","groups":"auto"}"#),
            (
                "paper",
                r#"{"name":"hcct","grouping":"paper","alpha":"own","freeze":0}"#,
            ),
            (
                "paper, freeze 1",
                r#"{"name":"hcct","grouping":"paper","alpha":"own","freeze":1}"#,
            ),
            (
                "alpha own, freeze 0",
                r#"{"name":"hcct","alpha":"own","freeze":0}"#,
            ),
            (
                "alpha own, freeze 1",
                r#"{"name":"hcct","alpha":"own","freeze":1}"#,
            ),
            (
                "share 0.2, freeze 0",
                r#"{"name":"hcct","alpha":{"share":0.2},"freeze":0}"#,
            ),
            (
                "share 0.2, freeze 1",
                r#"{"name":"hcct","alpha":{"share":0.2},"freeze":1}"#,
            ),
            (
                "share 0.2, freeze 3",
                r#"{"name":"hcct","alpha":{"share":0.2},"freeze":3}"#,
            ),
            (
                "share 0.35, freeze 0",
                r#"{"name":"hcct","alpha":{"share":0.35},"freeze":0}"#,
            ),
            (
                "share 0.35, freeze 1",
                r#"{"name":"hcct","alpha":{"share":0.35},"freeze":1}"#,
            ),
            (
                "share 0.35, freeze 3",
                r#"{"name":"hcct","alpha":{"share":0.35},"freeze":3}"#,
            ),
            (
                "share 0.5, freeze 0",
                r#"{"name":"hcct","alpha":{"share":0.5},"freeze":0}"#,
            ),
            (
                "share 0.5, freeze 1",
                r#"{"name":"hcct","alpha":{"share":0.5},"freeze":1}"#,
            ),
            (
                "share 0.5, freeze 3",
                r#"{"name":"hcct","alpha":{"share":0.5},"freeze":3}"#,
            ),
            (
                "share 0.7, freeze 0",
                r#"{"name":"hcct","alpha":{"share":0.7},"freeze":0}"#,
            ),
            (
                "share 0.7, freeze 1",
                r#"{"name":"hcct","alpha":{"share":0.7},"freeze":1}"#,
            ),
            (
                "share 0.7, freeze 3",
                r#"{"name":"hcct","alpha":{"share":0.7},"freeze":3}"#,
            ),
        ],
    },
    MethodTable {
        name: "radius",
        cases: &["digits-scaled"],
        rounds: 12,
        epochs: 5,
        rate: 0.02,
        methods: &[
            ("cs-rcfl 3, 0", r#"{"name":"cs-rcfl","coalitions":3}"#),
            (
                "cs-rcfl 3, .05",
                r#"{"name":"cs-rcfl","coalitions":3,"radius":0.05}"#,
            ),
            (
                "cs-rcfl 3, .2",
                r#"{"name":"cs-rcfl","coalitions":3,"radius":0.2}"#,
            ),
            (
                "cs-rcfl 3, .5",
                r#"{"name":"cs-rcfl","coalitions":3,"radius":0.5}"#,
            ),
            (
                "cs-rcfl auto, 0",
                r#"{"name":"cs-rcfl","coalitions":"auto"}"#,
            ),
            (
                "cs-rcfl auto, .05",
                r#"{"name":"cs-rcfl","coalitions":"auto","radius":0.05}"#,
            ),
            (
                "cs-rcfl auto, .2",
                r#"{"name":"cs-rcfl","coalitions":"auto","radius":0.2}"#,
            ),
            (
                "cs-rcfl auto, .5",
                r#"{"name":"cs-rcfl","coalitions":"auto","radius":0.5}"#,
            ),
        ],
    },
    MethodTable {
        name: "fedcollab",
        cases: &["linear", "logistic", "digits", "digits-iid", "digits-own"],
        rounds: 9,
        epochs: 10,
        rate: 0.02,
        methods: &[
            ("local", r#"{"name":"local"}"#),
            ("fedavg", r#"{"name":"fedavg"}"#),
            ("fedcollab", r#"{"name":"fedcollab"}"#),
            ("fedcollab 1", r#"{"name":"fedcollab","c":1.0}"#),
            ("fedcollab 3", r#"{"name":"fedcollab","c":3.0}"#),
            ("fedcollab 10", r#"{"name":"fedcollab","c":10.0}"#),
            ("fedcollab 30", r#"{"name":"fedcollab","c":30.0}"#),
        ],
    },
];
