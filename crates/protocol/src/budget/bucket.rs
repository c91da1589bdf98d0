//! Token buckets, and mutes that grow with every offence.

use std::time::Duration;

use crate::time::Time;

/// One token, in the millionths in which a bucket counts.
const TOKEN: i64 = 1_000_000;

/// Rate at which a bucket is refilled, and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Most tokens that the bucket holds.
    pub burst: u64,
    /// Tokens that are added in every `span`.
    pub tokens: u64,
    /// See `tokens`.
    pub span: Duration,
    /// Tokens that are added with every view that this member enters.
    pub per_view: u64,
}

impl Rate {
    /// `tokens` per second, and at most `burst`.
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

/// A token bucket that may go into debt. As long as there is a token, more than there are may be
/// spent; the debt (at most one burst) must be refilled first. So one large message always passes,
/// and the mean rate holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// In millionths of a token.
    level: i64,
    at: Time,
    views: u64,
}

impl Bucket {
    /// A full bucket.
    pub fn full(rate: &Rate, now: Time) -> Self {
        Self {
            level: most(rate),
            at: now,
            views: 0,
        }
    }

    /// Adds the tokens of the time until `now` and of views: `views` is the number of views entered
    /// since the start.
    pub fn refill(&mut self, rate: &Rate, now: Time, views: u64) {
        let span = rate.span.as_micros().max(1);
        let elapsed = (now - self.at).as_micros();
        let gained = elapsed * u128::from(rate.tokens) * TOKEN as u128 / span;
        // Time that is worth less than a millionth of a token is kept for the next refill.
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

    /// Returns true if tokens may be spent.
    pub fn is_open(&self) -> bool {
        self.level > 0
    }

    /// Returns the time until tokens may be spent, if no view is entered meanwhile.
    pub fn wait(&self, rate: &Rate) -> Duration {
        if self.is_open() {
            return Duration::ZERO;
        }
        let missing = (1 - self.level) as u128;
        let per = u128::from(rate.tokens.max(1)) * TOKEN as u128;
        let micros = (missing * rate.span.as_micros()).div_ceil(per);
        Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    /// Spends tokens. Gives how many were taken: fewer if the debt reaches its limit.
    pub fn take(&mut self, rate: &Rate, tokens: u64) -> u64 {
        let wanted = i64::try_from(tokens).unwrap_or(i64::MAX / TOKEN);
        let wanted = wanted.saturating_mul(TOKEN);
        let taken = wanted.min(self.level.saturating_add(most(rate))).max(0);
        self.level -= taken;
        (taken / TOKEN) as u64
    }

    /// Gives back tokens that were taken and not needed.
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

/// The first mute. Every further one is twice as long as the one before.
const FIRST: Duration = Duration::from_secs(1);
/// Most doublings: the longest mute is 256 s.
const DOUBLINGS: u32 = 8;
/// One doubling is taken back for every such span without an offence.
const FORGIVEN: Duration = Duration::from_secs(60);

/// The offences of a neighbour: things that no honest member does. A few are tolerated; further ones
/// are followed by mutes that grow. A mute ends by itself, because the cause may be a broken program
/// that is repaired.
#[derive(Debug, Clone, Copy)]
pub struct Offences {
    tolerated: Rate,
    left: Bucket,
    level: u32,
    until: Time,
}

impl Offences {
    /// Tolerates `burst` offences, and `tokens` more in every `span`.
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

    /// Returns true while a mute lasts.
    pub fn is_muted(&self, now: Time) -> bool {
        now < self.until
    }

    /// Counts one more offence. Gives the length of the mute that begins with it, if one does.
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
