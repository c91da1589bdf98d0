//! Everything that a program starts, to end it with the program: processes that leave its process group
//! as well.
//!
//! Two means, both of Linux. Where this process may make a control group (cgroup, version 2) below its own,
//! the program is put into one, which the kernel ends whole. And the program gets a mark in its
//! environment, which what it starts inherits: processes with that mark are ended, wherever they are. A
//! process outlives its program only if it clears its environment where there is no control group, or
//! belongs to another user. On other systems only the process group ends.

#[cfg(target_os = "linux")]
pub(super) use linux::Kin;
#[cfg(not(target_os = "linux"))]
pub(super) use other::Kin;

/// The variable with the mark.
const MARK: &str = "ROTA_LEARNER";

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::{self, Command};
    use std::sync::Once;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    use super::MARK;

    /// Number of passes that look for processes that were started meanwhile.
    const PASSES: usize = 8;
    /// Number of attempts to remove the control group, which fails until its processes are gone.
    const REMOVALS: usize = 20;

    /// The processes that descend from one program.
    pub(in crate::external) struct Kin {
        /// The value of the variable.
        mark: String,
        /// The folder of the control group, where there is one.
        group: Option<PathBuf>,
    }

    impl Kin {
        /// Of a program that is about to be started by this command.
        pub(in crate::external) fn of(command: &mut Command) -> Self {
            static COUNT: AtomicU64 = AtomicU64::new(0);
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let nanos = now.map_or(0, |now| now.as_nanos());
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let mark = format!("{}-{nanos}-{count}", process::id());
            command.env(MARK, &mark);
            let group = own_group().map(|own| own.join(format!("rota-learner-{mark}")));
            let group = group.filter(|group| fs::create_dir(group).is_ok());
            Self { mark, group }
        }

        /// The program runs.
        pub(in crate::external) fn started(&mut self, id: u32) {
            let joins = |group: &PathBuf| {
                fs::write(group.join("cgroup.procs"), id.to_string()).is_ok()
                    && group.join("cgroup.kill").exists()
            };
            if self.group.as_ref().is_some_and(joins) {
                return;
            }
            if let Some(group) = self.group.take() {
                let _ = fs::remove_dir(group);
            }
            static SAID: Once = Once::new();
            without_group(&SAID);
        }

        /// Ends all of them at once.
        pub(in crate::external) fn end(&self) {
            if let Some(group) = &self.group {
                let _ = fs::write(group.join("cgroup.kill"), "1");
            }
            for _ in 0..PASSES {
                if self.end_marked() == 0 {
                    break;
                }
            }
        }

        /// Returns how many processes there are of the program with this number.
        pub(in crate::external) fn count(&self, id: u32) -> usize {
            let group = self.group.as_ref();
            let group = group.and_then(|group| fs::read_to_string(group.join("cgroup.procs")).ok());
            // What it starts before it joins the control group stays outside of that.
            let group: BTreeSet<u32> = group
                .iter()
                .flat_map(|all| all.lines())
                .filter_map(|id| id.parse().ok())
                .collect();
            let ours = |(own, folder): &(Pid, PathBuf)| {
                let own = own.as_raw_nonzero().get().cast_unsigned();
                group.contains(&own) || group_of(folder) == Some(id) || self.is_marked(folder)
            };
            processes().filter(ours).count()
        }

        /// Ends the processes with the mark; how many there were.
        fn end_marked(&self) -> usize {
            let mut ended = 0;
            for (id, folder) in processes() {
                // Opened first, so that the number cannot become another process's in between.
                let Ok(handle) = pidfd_open(id, PidfdFlags::empty()) else {
                    continue;
                };
                if self.is_marked(&folder) {
                    ended += usize::from(pidfd_send_signal(&handle, Signal::KILL).is_ok());
                }
            }
            ended
        }

        /// Returns whether the process of this folder has the mark. One that has ended, or is another user's, shows no
        /// environment.
        fn is_marked(&self, folder: &Path) -> bool {
            let entry = [MARK.as_bytes(), b"=", self.mark.as_bytes()].concat();
            let environment = fs::read(folder.join("environ")).unwrap_or_default();
            environment.split(|&byte| byte == 0).any(|one| one == entry)
        }
    }

    impl Drop for Kin {
        #[expect(
            clippy::disallowed_methods,
            reason = "the kernel says nothing when the last process of a control group is gone"
        )]
        fn drop(&mut self) {
            let Some(group) = &self.group else { return };
            for _ in 0..REMOVALS {
                if fs::remove_dir(group).is_ok() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    /// All processes that can be seen, with their folders.
    fn processes() -> impl Iterator<Item = (Pid, PathBuf)> {
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        all.filter_map(|process| {
            let id = process.file_name().to_str()?.parse().ok()?;
            Some((Pid::from_raw(id)?, process.path()))
        })
    }

    /// The process group of the process of this folder.
    fn group_of(folder: &Path) -> Option<u32> {
        let stat = fs::read_to_string(folder.join("stat")).ok()?;
        // Name, state, parent, group; the name is in brackets and may have any character.
        let (_, rest) = stat.rsplit_once(") ")?;
        rest.split(' ').nth(2)?.parse().ok()
    }

    /// Says once what a program without a control group can leave behind.
    fn without_group(said: &Once) {
        said.call_once(|| {
            tracing::warn!(
                "no control group can be made here: a process that a learner starts outlives it if it \
                 clears its environment"
            );
        });
    }

    /// The folder of this process's own control group of version 2.
    fn own_group() -> Option<PathBuf> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let mut mounts = mounts.lines().map(|line| line.split(' '));
        let root = mounts.find_map(|mut words| {
            let (_, folder, kind) = (words.next()?, words.next()?, words.next()?);
            (kind == "cgroup2").then(|| PathBuf::from(folder))
        })?;
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
        Some(root.join(Path::new(own)))
    }

    #[cfg(test)]
    mod tests {
        #![allow(clippy::unwrap_used)]
        use std::os::unix::process::{CommandExt, ExitStatusExt};
        use std::sync::Arc;
        use std::sync::atomic::AtomicUsize;

        use tracing::span::{Attributes, Id, Record};
        use tracing::{Event, Level, Metadata, Subscriber};

        use super::*;

        /// Counts warnings, which a node shows unless it is told to be silent.
        struct Warnings(Arc<AtomicUsize>);

        impl Subscriber for Warnings {
            fn enabled(&self, _: &Metadata<'_>) -> bool {
                true
            }
            fn new_span(&self, _: &Attributes<'_>) -> Id {
                Id::from_u64(1)
            }
            fn record(&self, _: &Id, _: &Record<'_>) {}
            fn record_follows_from(&self, _: &Id, _: &Id) {}
            fn event(&self, event: &Event<'_>) {
                let warning = *event.metadata().level() == Level::WARN;
                self.0.fetch_add(usize::from(warning), Ordering::Relaxed);
            }
            fn enter(&self, _: &Id) {}
            fn exit(&self, _: &Id) {}
        }

        #[test]
        fn that_there_is_no_control_group_is_one_warning() {
            let count = Arc::new(AtomicUsize::new(0));
            let said = Once::new();
            tracing::subscriber::with_default(Warnings(count.clone()), || {
                without_group(&said);
                without_group(&said);
            });
            assert_eq!(count.load(Ordering::Relaxed), 1);
        }

        fn sleep() -> Command {
            let mut command = Command::new("sleep");
            command.arg("60").process_group(0);
            command
        }

        #[test]
        fn a_process_with_the_mark_ends_wherever_it_is_and_no_other() {
            let mut command = sleep();
            let mut kin = Kin::of(&mut command);
            if let Some(group) = kin.group.take() {
                fs::remove_dir(group).unwrap();
            }
            let mut marked = command.spawn().unwrap();
            let mut other = sleep();
            let _other_kin = Kin::of(&mut other);
            let mut other = other.spawn().unwrap();
            kin.end();
            assert_eq!(marked.wait().unwrap().signal(), Some(9));
            assert!(other.try_wait().unwrap().is_none());
            other.kill().unwrap();
            other.wait().unwrap();
        }

        #[test]
        fn a_process_that_clears_its_environment_ends_with_its_cgroup() {
            let mut command = sleep();
            let mut kin = Kin::of(&mut command);
            let mut process = command.env_remove(MARK).spawn().unwrap();
            kin.started(process.id());
            let Some(group) = kin.group.clone() else {
                crate::skipped::skipped("no control group can be made here");
                process.kill().unwrap();
                process.wait().unwrap();
                return;
            };
            kin.end();
            assert_eq!(process.wait().unwrap().signal(), Some(9));
            drop(kin);
            assert!(!group.exists());
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use std::process::Command;
    use std::sync::Once;

    /// The processes that descend from one program.
    pub(in crate::external) struct Kin;

    impl Kin {
        /// Of a program that is about to be started by this command.
        pub(in crate::external) fn of(command: &mut Command) -> Self {
            command.env(super::MARK, "1");
            Self
        }

        /// The program runs.
        pub(in crate::external) fn started(&mut self, _: u32) {
            static SAID: Once = Once::new();
            SAID.call_once(|| {
                tracing::warn!(
                    "a process that a learner starts outlives it on this system if it leaves the \
                     learner's process group"
                );
            });
        }

        /// Nobody counts them.
        pub(in crate::external) fn count(&self, _: u32) -> usize {
            0
        }

        /// Nothing more can be ended.
        pub(in crate::external) fn end(&self) {}
    }
}
