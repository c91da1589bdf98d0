//! Tokens that are spent and come back, and how long somebody who broke the rules is muted.

use std::time::Duration;

use crate::time::Time;

/// A token, in the millionths that a bucket counts in.
const TOKEN: i64 = 1_000_000;

/// How fast tokens come back, and how many may be saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Most tokens that are saved.
    pub burst: u64,
    /// Tokens that come back in every `span`.
    pub tokens: u64,
    /// See `tokens`.
    pub span: Duration,
    /// Tokens that come back with every view that this member enters.
    pub per_view: u64,
}

impl Rate {
    /// So many tokens a second, and a burst.
    pub const fn per_second(tokens: u64, burst: u64) -> Self {
        let span = Duration::from_secs(1);
        Self {
            burst,
            tokens,
            span,
            per_view: 0,
        }
    }
}

/// A token bucket. Whoever finds a token in it may spend more than there is: the debt, of at most
/// one burst, is paid before the next. So one large message always fits, and the mean rate holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// In millionths of a token.
    level: i64,
    at: Time,
    views: u64,
}

impl Bucket {
    /// Full, at that moment.
    pub fn full(rate: &Rate, now: Time) -> Self {
        Self {
            level: most(rate),
            at: now,
            views: 0,
        }
    }

    /// Adds what came back until now, `views` being how many views were entered in all.
    pub fn refill(&mut self, rate: &Rate, now: Time, views: u64) {
        let span = rate.span.as_micros().max(1);
        let elapsed = (now - self.at).as_micros();
        let gained = elapsed * u128::from(rate.tokens) * TOKEN as u128 / span;
        // Until it is worth a millionth the time is saved up.
        if gained > 0 {
            self.gain(gained, rate);
            self.at = now;
        }
        if views > self.views {
            let gained = u128::from(views - self.views) * u128::from(rate.per_view);
            self.gain(gained * TOKEN as u128, rate);
            self.views = views;
        }
    }

    /// Whether something may be spent.
    pub fn is_open(&self) -> bool {
        self.level > 0
    }

    /// How long until something may be spent again, if only time brings tokens back.
    pub fn wait(&self, rate: &Rate) -> Duration {
        if self.is_open() {
            return Duration::ZERO;
        }
        let missing = (1 - self.level) as u128;
        let per = u128::from(rate.tokens.max(1)) * TOKEN as u128;
        let micros = (missing * rate.span.as_micros()).div_ceil(per);
        Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    /// Spends tokens; gives how many were really taken, which are less where the debt is full.
    pub fn take(&mut self, rate: &Rate, tokens: u64) -> u64 {
        let wanted = i64::try_from(tokens).unwrap_or(i64::MAX / TOKEN);
        let wanted = wanted.saturating_mul(TOKEN);
        let taken = wanted.min(self.level.saturating_add(most(rate))).max(0);
        self.level -= taken;
        (taken / TOKEN) as u64
    }

    /// Gives tokens back that were taken and not needed.
    pub fn give_back(&mut self, rate: &Rate, tokens: u64) {
        self.gain(u128::from(tokens) * TOKEN as u128, rate);
    }

    fn gain(&mut self, gained: u128, rate: &Rate) {
        let gained = i64::try_from(gained).unwrap_or(i64::MAX);
        self.level = self.level.saturating_add(gained).min(most(rate));
    }
}

fn most(rate: &Rate) -> i64 {
    i64::try_from(rate.burst)
        .unwrap_or(i64::MAX)
        .saturating_mul(TOKEN)
}

/// The first mute; every further one is twice as long as the one before.
const FIRST: Duration = Duration::from_secs(1);
/// Doublings at most: 256 s.
const DOUBLINGS: u32 = 8;
/// One doubling is forgotten for every such time without an offence.
const FORGIVEN: Duration = Duration::from_secs(60);

/// Somebody who breaks rules that no honest member breaks, and what follows: a few times nothing,
/// then a mute that grows. A mute ends by itself, because an honest member with a broken program
/// may recover.
#[derive(Debug, Clone, Copy)]
pub struct Offences {
    tolerated: Rate,
    left: Bucket,
    level: u32,
    until: Time,
}

impl Offences {
    /// Tolerates so many, and one more in every `span`.
    pub fn tolerating(burst: u64, tokens: u64, span: Duration, now: Time) -> Self {
        let tolerated = Rate {
            burst,
            tokens,
            span,
            per_view: 0,
        };
        Self {
            tolerated,
            left: Bucket::full(&tolerated, now),
            level: 0,
            until: Time::ZERO,
        }
    }

    /// Whether the mute is not over.
    pub fn is_muted(&self, now: Time) -> bool {
        now < self.until
    }

    /// One more; gives the mute that begins with it, if one does.
    pub fn another(&mut self, now: Time) -> Option<Duration> {
        if self.is_muted(now) {
            return None;
        }
        self.left.refill(&self.tolerated, now, 0);
        if self.left.level >= TOKEN {
            self.left.take(&self.tolerated, 1);
            return None;
        }
        let good = (now - self.until).as_micros() / FORGIVEN.as_micros();
        let forgiven = u32::try_from(good).unwrap_or(u32::MAX);
        self.level = self.level.saturating_sub(forgiven);
        let span = FIRST * (1 << self.level.min(DOUBLINGS));
        self.level = (self.level + 1).min(DOUBLINGS);
        self.until = now + span;
        Some(span)
    }
}
