//! Duration of one local training on this machine, against the time that the others wait for it.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use methods::learner::{LearnError, Learner, Progress, Task};
use protocol::Epoch;

use formatting::numbers::seconds;

/// Time for which a training is watched that reports its progress: the rest is as fast.
const WATCHED: Duration = Duration::from_secs(10);
/// Time for which any training is waited for that does not report its progress.
const LEAST: Duration = Duration::from_secs(1);
/// Room that is left above the time that was measured: a machine that does other work as well is slower.
const ROOM: f64 = 1.5;

/// Duration of one training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TrainingPace {
    /// The training takes this long, or as long as its first seconds suggest.
    Takes(Duration),
    /// The training takes longer than this, after which it was ended.
    Longer(Duration),
}

/// Measures one training of `learner`, as a strategy equips it, by the task of a round that trains. Its
/// result is thrown away. A training that says how far it has come is ended after ten seconds, and the
/// rest is estimated; any other one is ended after one and a half times `straggler-timeout`.
///
/// `None` where the task trains nothing.
///
/// # Errors
/// [`LearnError`] of the learner, before it had trained a step.
pub fn pace(
    learner: &dyn Learner,
    task: &Task,
    seed: u64,
    patience: Duration,
) -> Result<Option<TrainingPace>, LearnError> {
    let began = Instant::now();
    timed(learner, task, seed, patience, &|| began.elapsed())
}

/// Measures one training as [`pace`] does, by a clock that shows the time since the beginning.
fn timed(
    learner: &dyn Learner,
    task: &Task,
    seed: u64,
    patience: Duration,
    clock: &dyn Fn() -> Duration,
) -> Result<Option<TrainingPace>, LearnError> {
    let Task::Train(_) = task else {
        return Ok(None);
    };
    let (start, personal) = (learner.initial(seed), learner.initial_personal(seed));
    let most = patience.mul_f64(ROOM).max(LEAST);
    // Last report heard, and its time.
    let mut last = None::<(Progress, Duration)>;
    let mut ended = false;
    let trained = learner.carry_out(&start, &personal, task, seed, &mut |at| {
        let now = clock();
        if last.is_none_or(|(last, _)| last.step != at.step) {
            last = Some((at, now));
        }
        let known = at.step > 0 && at.step < at.steps;
        ended = now >= if known { WATCHED } else { most };
        if ended {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    let last = last.filter(|(last, _)| last.step > 0 && last.step <= last.steps);
    match (trained, last) {
        (Ok(_), _) => Ok(Some(TrainingPace::Takes(clock()))),
        // A training that fails in the middle tells its pace, too.
        (Err(_), Some((last, heard))) => {
            let share = last.steps as f64 / last.step as f64;
            Ok(Some(TrainingPace::Takes(heard.mul_f64(share))))
        }
        (Err(_), None) if ended => Ok(Some(TrainingPace::Longer(clock()))),
        (Err(error), None) => Err(error),
    }
}

impl TrainingPace {
    /// The time that is known of.
    pub fn known(self) -> Duration {
        match self {
            Self::Takes(span) | Self::Longer(span) => span,
        }
    }

    /// The pace in words.
    pub fn words(self) -> String {
        let span = seconds(self.known().as_secs_f64());
        match self {
            Self::Takes(_) => span,
            Self::Longer(_) => format!("more than {span}"),
        }
    }

    /// The patience in heartbeats that is enough for it, with room.
    pub fn heartbeats(self, heartbeat: Duration) -> u32 {
        let heartbeats = ROOM * self.known().as_secs_f64() / heartbeat.as_secs_f64();
        heartbeats.ceil().min(f64::from(u32::MAX)) as u32
    }

    /// Returns what is wrong with the agreed patience, and what to do: nothing where there is room.
    pub fn against(self, epoch: &Epoch) -> Option<(String, String)> {
        let (heartbeat, patience) = (epoch.heartbeat(), epoch.patience());
        let enough = self.heartbeats(heartbeat);
        if enough <= epoch.protocol.patience {
            return None;
        }
        let late = if self.known() >= patience {
            "would come too late for every round"
        } else {
            "comes too late for rounds as soon as the machine does other work as well"
        };
        let wait = seconds(patience.as_secs_f64());
        let text = format!(
            "one training takes {} here, and the others wait {wait} for it: this institution's model {late}",
            self.words()
        );
        let remedy = format!(
            "agree on `straggler-timeout = {enough}` under [protocol] (in heartbeats of {}; {} now), before all have signed in \
             federation.toml and afterwards with `rota federation change`; or on less training in a round \
             (`epochs`)",
            seconds(heartbeat.as_secs_f64()),
            epoch.protocol.patience
        );
        Some((text, remedy))
    }
}

#[cfg(test)]
mod tests;
