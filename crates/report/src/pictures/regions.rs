//! The regions of silos: groups that the source of the data puts them in, each with a colour.

use std::collections::BTreeSet;

use maud::{Markup, html};

use crate::story::{SiloStory, Story};
use crate::svg::colour;

/// The regions, in the order of their names.
pub(super) struct Regions<'a>(Vec<&'a str>);

impl<'a> Regions<'a> {
    pub(super) fn of(story: &'a Story) -> Self {
        let silos = story.silos.iter().chain(&story.outside);
        let names: BTreeSet<&str> = silos.filter_map(|silo| silo.group.as_deref()).collect();
        Self(names.into_iter().collect())
    }

    /// The class of a silo's colour: that of its region; without regions all have one.
    pub(super) fn class(&self, silo: &SiloStory) -> String {
        if self.0.is_empty() {
            return colour(Some(0));
        }
        let group = silo.group.as_deref();
        let at = group.and_then(|group| self.0.iter().position(|name| *name == group));
        colour(at)
    }

    /// A silo with its region.
    pub(super) fn name(&self, silo: &SiloStory) -> String {
        match &silo.group {
            Some(group) => format!("{} ({group})", silo.name),
            None => silo.name.clone(),
        }
    }

    /// Returns what the colours mean; empty without regions.
    pub(super) fn legend(&self) -> Markup {
        html! {
            @if !self.0.is_empty() {
                ul.legend.inline {
                    @for (at, name) in self.0.iter().enumerate() {
                        li.(colour(Some(at))) {
                            svg.key viewBox="0 0 14 14" aria-hidden="true" { circle.node cx="7" cy="7" r="6" {} }
                            (name)
                        }
                    }
                }
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
