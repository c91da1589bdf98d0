//! Additional tensors that travel with a model, such as state that a server would keep beside it.

use std::sync::Arc;

use super::{Layout, LayoutError, Params, Role, TensorSpec};

/// A layout with parts attached to it: the tensors of other layouts, each under a prefix
/// (`name.tensor`) and as buffers, so that they are stored and hashed with the model but neither
/// trained nor counted in norms.
#[derive(Debug, Clone)]
pub struct Attached {
    base: Arc<Layout>,
    /// The layout of every part under its own names, and under its names in the whole.
    parts: Vec<(Arc<Layout>, Arc<Layout>)>,
    whole: Arc<Layout>,
}

impl Attached {
    /// `base` with `parts` attached to it, each under its name.
    ///
    /// # Errors
    /// [`LayoutError`] if `base` has a tensor of such a name already.
    pub fn new(base: &Arc<Layout>, parts: &[(&str, &Arc<Layout>)]) -> Result<Self, LayoutError> {
        let named = |name: &str, layout: &Layout| {
            let tensors = layout.tensors().iter().map(|tensor| TensorSpec {
                name: attached(name, &tensor.name),
                role: Role::Buffer,
                ..tensor.clone()
            });
            Layout::new(tensors.collect())
        };
        let parts = parts
            .iter()
            .map(|(name, layout)| Ok(((*layout).clone(), named(name, layout)?)))
            .collect::<Result<Vec<_>, LayoutError>>()?;
        // Attached tensors are buffers and belong to no layer, so that the depth of the base's is
        // that of the whole.
        let mut all: Vec<_> = base.by_depth_if_known().into_iter().cloned().collect();
        all.extend(parts.iter().flat_map(|(_, part)| part.tensors()).cloned());
        let whole = match base.depth() {
            Some(_) => Layout::by_depth(all),
            None => Layout::new(all),
        };
        Ok(Self {
            base: base.clone(),
            whole: whole?.with_norms(base.norms().clone()),
            parts,
        })
    }

    /// Finds the parts that [`new`](Self::new) attached to a layout under these names.
    pub fn find(whole: &Arc<Layout>, names: &[&str]) -> Self {
        let is_attached = |tensor: &&TensorSpec| {
            names
                .iter()
                .any(|name| tensor.name.starts_with(&attached(name, "")))
        };
        let base = whole.select(|tensor| !is_attached(tensor));
        // Attached tensors are buffers: their own role is that of the base's tensor of that name.
        let role = |own: &str| match base.position(own) {
            Some(at) => base.tensors()[at].role,
            None => Role::Buffer,
        };
        let part = |name: &&str| {
            let prefix = attached(name, "");
            let own = whole.tensors().iter().filter_map(|tensor| {
                let own = tensor.name.strip_prefix(&prefix)?;
                Some(TensorSpec::new(own, tensor.shape.clone(), role(own)))
            });
            Layout::new(own.collect())
                .expect("names that differ with their prefix differ without it")
        };
        let parts: Vec<_> = names.iter().map(part).collect();
        let parts: Vec<_> = names.iter().copied().zip(&parts).collect();
        Self::new(&base, &parts).expect("the names come from one layout")
    }

    /// The layout without the attached parts.
    pub fn base(&self) -> &Arc<Layout> {
        &self.base
    }

    /// The layout with all parts attached.
    pub fn whole(&self) -> &Arc<Layout> {
        &self.whole
    }

    /// The layout of part number `at` under its own names.
    ///
    /// # Panics
    /// If there are `at` parts or fewer.
    pub fn part(&self, at: usize) -> &Arc<Layout> {
        &self.parts[at].0
    }

    /// A model of the whole layout from its parts, each under its own names.
    ///
    /// # Panics
    /// If a part has another layout, or there are more or fewer.
    pub fn join(&self, base: &Params, parts: &[&Params]) -> Params {
        assert_eq!(parts.len(), self.parts.len(), "as many models as parts");
        // A common prefix leaves the order of names as it is.
        let named = parts.iter().zip(&self.parts).map(|(part, (own, named))| {
            assert_eq!(part.layout(), own, "each part has its layout");
            Params::from_values(named, part.values())
        });
        let named: Vec<_> = named.collect();
        let mut all = vec![base];
        all.extend(&named);
        Params::gather(&self.whole, &all).expect("the base has its layout")
    }

    /// The base and the parts of a model of the whole layout, each under its own names.
    ///
    /// # Panics
    /// If `whole` has another layout.
    pub fn split(&self, whole: &Params) -> (Params, Vec<Params>) {
        let of = |layout: &Arc<Layout>| {
            Params::gather(layout, &[whole]).expect("a model of the whole layout")
        };
        let part = |(own, named): &(Arc<Layout>, Arc<Layout>)| {
            Params::from_values(own, of(named).values())
        };
        (of(&self.base), self.parts.iter().map(part).collect())
    }
}

/// A tensor's name as part `name`.
fn attached(name: &str, tensor: &str) -> String {
    format!("{name}.{tensor}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn base() -> Arc<Layout> {
        Layout::new(vec![
            TensorSpec::new("a.weight", [2], Role::Weight),
            TensorSpec::new("a.bias", [1], Role::Bias),
            TensorSpec::new("scale", [1], Role::Buffer),
        ])
        .unwrap()
    }

    #[test]
    fn joined_parts_are_split_and_found_again() {
        let base = base();
        let trained = base.trained();
        assert_eq!(trained.describe(), "a.bias [1], a.weight [2]");
        let attached = Attached::new(&base, &[("z", &trained), ("m.n", &trained)]).unwrap();
        assert_eq!(
            attached.whole().describe(),
            "a.bias [1], a.weight [2], m.n.a.bias [1], m.n.a.weight [2], scale [1], \
             z.a.bias [1], z.a.weight [2]"
        );
        assert_eq!(attached.whole().trained(), trained);
        let model = Params::from_values(&base, &[1.0, 2.0, 3.0, 4.0]);
        let parts = [[5.0, 6.0, 7.0], [-5.0, -6.0, -7.0]];
        let parts = parts.map(|values| Params::from_values(&trained, &values));
        let whole = attached.join(&model, &[&parts[0], &parts[1]]);
        assert_eq!(whole.tensor("z.a.weight"), Some([6.0, 7.0].as_slice()));
        assert_eq!(whole.tensor("m.n.a.bias"), Some([-5.0].as_slice()));
        let again = Attached::find(whole.layout(), &["z", "m.n"]);
        assert_eq!(again.base(), &base);
        assert_eq!(again.split(&whole), (model, parts.to_vec()));
    }

    #[test]
    fn parts_with_tensors_that_the_base_lacks_are_found() {
        let own = Layout::new(vec![TensorSpec::new("loss", [1], Role::Buffer)]).unwrap();
        let attached = Attached::new(&base(), &[("report", &own)]).unwrap();
        let again = Attached::find(attached.whole(), &["report"]);
        assert_eq!((again.base(), again.part(0)), (&base(), &own));
    }

    #[test]
    fn duplicate_names_are_refused() {
        let base = base();
        let taken = Layout::new(vec![TensorSpec::new("weight", [2], Role::Weight)]).unwrap();
        let error = Attached::new(&base, &[("a", &taken)]).unwrap_err();
        assert_eq!(error, LayoutError::Duplicate("a.weight".into()));
    }

    #[test]
    fn a_tensor_comes_from_the_first_part_that_has_it() {
        let base = base();
        let layout = Layout::new(vec![TensorSpec::new("scale", [1], Role::Buffer)]).unwrap();
        let first = Params::from_values(&layout, &[9.0]);
        let rest = Params::from_values(&base, &[1.0, 2.0, 3.0, 4.0]);
        let gathered = Params::gather(&base, &[&first, &rest]).unwrap();
        assert_eq!(gathered.values(), [1.0, 2.0, 3.0, 9.0]);
        assert_eq!(Params::gather(&base, &[&first]), None);
    }
}
