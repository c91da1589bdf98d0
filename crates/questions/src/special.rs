//! Distribution functions for what is printed, and functions of a site's own likelihood.

use std::f64::consts::SQRT_2;

/// P(Z > z) of a normal number.
pub fn normal_above(z: f64) -> f64 {
    0.5 * libm::erfc(z / SQRT_2)
}

/// P(|Z| > |z|) of a normal number.
pub fn normal_two_sided(z: f64) -> f64 {
    libm::erfc(z.abs() / SQRT_2)
}

/// The z that a normal number exceeds with this probability, between 0 and 1.
pub fn normal_quantile(above: f64) -> f64 {
    inverse(above, normal_above, -40.0, 40.0)
}

/// P(X > x) of χ² with these degrees of freedom.
pub fn chi_squared_above(x: f64, freedom: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    gamma_above(0.5 * freedom, 0.5 * x)
}

/// P(|T| > |t|) of Student's t.
pub fn student_two_sided(t: f64, freedom: f64) -> f64 {
    beta_below(0.5 * freedom, 0.5, freedom / (freedom + t * t))
}

/// P(F > f) of the F distribution with these degrees of freedom.
pub fn f_above(f: f64, numerator: f64, denominator: f64) -> f64 {
    beta_below(
        0.5 * denominator,
        0.5 * numerator,
        denominator / (denominator + numerator * f),
    )
}

/// The t that Student's t exceeds in absolute value with this probability.
pub fn student_quantile_two_sided(probability: f64, freedom: f64) -> f64 {
    inverse(probability, |t| student_two_sided(t, freedom), 0.0, 1e8)
}

/// Returns where a falling function has this value, by bisection.
fn inverse(value: f64, of: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if of(middle) > value {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// Q(a, x), the regularised upper incomplete gamma function (Press et al., *Numerical Recipes*, 3rd edition, 6.2).
fn gamma_above(a: f64, x: f64) -> f64 {
    let front = libm::exp(a * libm::log(x) - x - libm::lgamma(a));
    if x < a + 1.0 {
        let (mut term, mut sum, mut at) = (1.0 / a, 1.0 / a, a);
        for _ in 0..10_000 {
            at += 1.0;
            term *= x / at;
            sum += term;
            if term < sum * 1e-17 {
                break;
            }
        }
        return (1.0 - front * sum).max(0.0);
    }
    let mut b = x + 1.0 - a;
    let (mut c, mut d) = (1e300, 1.0 / b);
    let mut fraction = d;
    for step in 1..10_000 {
        let step = f64::from(step);
        let factor = -step * (step - a);
        b += 2.0;
        d = 1.0 / not_zero(factor * d + b);
        c = not_zero(b + factor / c);
        fraction *= d * c;
        if (d * c - 1.0).abs() < 1e-16 {
            break;
        }
    }
    front * fraction
}

/// I_x(a, b), the regularised incomplete beta function (the same, 6.4).
fn beta_below(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    let front = libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b);
    let front = libm::exp(front + a * libm::log(x) + b * libm::log1p(-x));
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, 1.0 - x) / b
    }
}

fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    let mut d = 1.0 / not_zero(1.0 - (a + b) * x / (a + 1.0));
    let (mut c, mut fraction) = (1.0, d);
    for m in 1..10_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        for factor in [even, odd] {
            d = 1.0 / not_zero(1.0 + factor * d);
            c = not_zero(1.0 + factor / c);
            fraction *= d * c;
        }
        if (d * c - 1.0).abs() < 1e-16 {
            break;
        }
    }
    fraction
}

fn not_zero(number: f64) -> f64 {
    if number.abs() < 1e-300 {
        1e-300
    } else {
        number
    }
}

/// ψ(x), the derivative of ln Γ, for x > 0.
pub fn digamma(mut x: f64) -> f64 {
    let mut below = 0.0;
    while x < 12.0 {
        below -= 1.0 / x;
        x += 1.0;
    }
    let s = 1.0 / (x * x);
    // The asymptotic series with Bernoulli numbers (Abramowitz & Stegun 6.3.18).
    let series = s
        * (1.0 / 12.0
            - s * (1.0 / 120.0
                - s * (1.0 / 252.0 - s * (1.0 / 240.0 - s * (1.0 / 132.0 - s * 691.0 / 32760.0)))));
    below + libm::log(x) - 0.5 / x - series
}

/// ψ₁(x), the second derivative of ln Γ, for x > 0.
pub fn trigamma(mut x: f64) -> f64 {
    let mut below = 0.0;
    while x < 12.0 {
        below += 1.0 / (x * x);
        x += 1.0;
    }
    let s = 1.0 / (x * x);
    // Abramowitz & Stegun 6.4.12.
    let series = s
        * (1.0 / 6.0
            - s * (1.0 / 30.0
                - s * (1.0 / 42.0 - s * (1.0 / 30.0 - s * (5.0 / 66.0 - s * 691.0 / 2730.0)))));
    below + 1.0 / x + 0.5 * s + series / x
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!(
            (found - expected).abs() <= 1e-12 * expected.abs().max(1e-3),
            "{found} {expected}"
        );
    }

    #[test]
    fn distributions_have_the_values_of_scipy() {
        near(normal_two_sided(1.96), 0.049_995_790_296_440_87);
        near(normal_quantile(0.025), 1.959_963_984_540_054_5);
        near(chi_squared_above(3.841_458_820_694_124, 1.0), 0.05);
        near(chi_squared_above(10.0, 4.0), 0.040_427_681_994_512_8);
        near(chi_squared_above(120.0, 6.0), 1.629_586_652_937_817e-23);
        near(student_two_sided(2.0, 5.0), 0.101_939_478_829_858_35);
        near(f_above(3.0, 2.0, 10.0), 0.095_367_431_640_624_96);
        near(
            student_quantile_two_sided(0.05, 7.0),
            2.364_624_251_592_784_3,
        );
    }

    #[test]
    fn derivatives_of_the_gamma_function_are_known_at_one() {
        // −γ and π²/6.
        near(digamma(1.0), -0.577_215_664_901_532_9);
        near(
            trigamma(1.0),
            std::f64::consts::PI * std::f64::consts::PI / 6.0,
        );
        near(digamma(30.5) - digamma(29.5), 1.0 / 29.5);
        near(trigamma(0.3) - trigamma(1.3), 1.0 / 0.09);
    }
}
