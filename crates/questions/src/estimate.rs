//! An estimate with its standard error, and what is printed of it.

use serde::{Deserialize, Serialize};

use crate::special::{
    normal_quantile, normal_two_sided, student_quantile_two_sided, student_two_sided,
};

/// An estimate with its standard error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
    /// Degrees of freedom of Student's t; none for the normal distribution.
    pub freedom: Option<f64>,
}

impl Estimate {
    /// An estimate with a normal error.
    pub fn normal(value: f64, error: f64) -> Self {
        Self {
            value,
            error,
            freedom: None,
        }
    }

    /// Wald's z or t.
    pub fn statistic(self) -> f64 {
        self.value / self.error
    }

    /// The two-sided p-value of the hypothesis that it is 0.
    pub fn p(self) -> f64 {
        match self.freedom {
            None => normal_two_sided(self.statistic()),
            Some(freedom) => student_two_sided(self.statistic(), freedom),
        }
    }

    /// The confidence interval of this level, such as 0.95.
    pub fn interval(self, level: f64) -> [f64; 2] {
        let width = match self.freedom {
            None => normal_quantile(0.5 * (1.0 - level)),
            Some(freedom) => student_quantile_two_sided(1.0 - level, freedom),
        };
        [
            self.value - width * self.error,
            self.value + width * self.error,
        ]
    }
}
