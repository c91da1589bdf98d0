//! Makes silos of the rows of a source: partitions them, chooses rows, and only then decodes those.

use std::path::Path;

use methods::Split;

use super::config::{ImagesConfig, ImagesFrom, TestPart};
use super::pool::{PicturePool, PoolRow};
use super::transform::Picture;
use crate::data::partition::{PartitionConfig, PartitionedSilo, RowsToPartition, Traits, counts};
use crate::data::{DataError, DataSet, Table, Target};
use crate::random::{shuffle, stream};

/// Scaling of one value of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueKind {
    /// From 0 to 255 to −1 to 1.
    Pixels,
    /// As it is.
    Plain,
    /// Divided by the sum of the row.
    Shares,
}

impl ImagesConfig {
    /// All silos: as many as are asked for, by default `default` where the partition allows any number.
    ///
    /// # Errors
    /// [`DataError`]: no data folder, a file that cannot be read, a partition that is not possible, or
    /// pictures of different sizes.
    pub fn read(
        &self,
        silos: Option<usize>,
        default: usize,
        folder: Option<&Path>,
        seed: u64,
    ) -> Result<DataSet, DataError> {
        Ok(self.read_shaped(silos, default, folder, seed)?.0)
    }

    /// The silos, and the channels, height and width of their rows if these are pictures.
    pub(super) fn read_shaped(
        &self,
        silos: Option<usize>,
        default: usize,
        folder: Option<&Path>,
        seed: u64,
    ) -> Result<(DataSet, Option<[usize; 3]>), DataError> {
        let pool = match (self.from.known(), folder) {
            (Some((source_name, _)), None) => {
                return Err(DataError::NoFolder {
                    source_name,
                    hint: "`rota data list` says where the files can be had.",
                });
            }
            (_, folder) => self.from.read_known(folder.unwrap_or(Path::new("")))?,
        };
        self.silos_of(pool, silos, default, seed)
    }

    fn silos_of(
        &self,
        mut pool: PicturePool,
        silos: Option<usize>,
        default: usize,
        seed: u64,
    ) -> Result<(DataSet, Option<[usize; 3]>), DataError> {
        self.check()?;
        let seed = self.seed.unwrap_or(seed);
        match self.test_part {
            TestPart::Own => (),
            TestPart::Unused => pool.rows.retain(|row| !row.test),
            TestPart::Pooled => pool.rows.iter_mut().for_each(|row| row.test = false),
        }
        let parts = self.parts(&pool, silos, default, seed)?;
        let kinds: Vec<ValueKind> = pool.sets.iter().map(|set| self.kind(set)).collect();
        let pictures = pool.sets.iter().all(|set| set.are_pictures());
        if (self.size.is_some() || self.grey) && !pictures {
            return Err(DataError::Config(
                "`size` and `grey` are for pictures, and the rows are features: leave them out"
                    .into(),
            ));
        }
        let mut builder = TableBuilder {
            config: self,
            kinds,
            size: self.size.or(self.from.defaults().size),
            colour: self.from == ImagesFrom::Digits,
            shape: None,
            columns: Vec::new(),
        };
        builder.find_colour(&pool, &parts)?;
        let masked = pool.masks.iter().filter(|masks| masks.is_some()).count();
        if masked != 0 && masked != pool.masks.len() {
            return Err(DataError::Config(
                "some of the files have masks and some have classes: use files of one kind".into(),
            ));
        }
        let tests = pool.has_test_rows();
        let mut built = Vec::with_capacity(parts.len());
        for part in parts {
            let rows = self.choose(&pool, &part, seed);
            let mut table = builder.table(&pool, &rows, tests)?;
            table.group = table
                .domain()
                .and_then(|domain| pool.domains.get(domain as usize))
                .cloned();
            built.push((part.name, table));
        }
        let data = DataSet {
            target: match builder.shape {
                Some([_, height, width]) if masked > 0 => Target::Mask {
                    pixels: height * width,
                },
                _ => Target::Classes(pool.classes),
            },
            silos: built,
            schema: None,
            notes: pool.notes,
            subgroups: Vec::new(),
        };
        Ok((data, builder.shape.filter(|_| pictures)))
    }

    fn check(&self) -> Result<(), DataError> {
        let size = self.size.is_none_or(|size| (1..=1024).contains(&size));
        let rows = self.rows != Some(0) && self.test_rows != Some(0);
        let fraction = self
            .fraction
            .is_none_or(|fraction| fraction > 0.0 && fraction <= 1.0);
        if size && rows && fraction {
            Ok(())
        } else {
            Err(DataError::Config(
                "images: `size` must be from 1 to 1024, `rows` and `test-rows` at least 1, and \
                 `fraction` above 0 and at most 1"
                    .into(),
            ))
        }
    }

    /// The silos and their rows, before some are chosen.
    fn parts(
        &self,
        pool: &PicturePool,
        silos: Option<usize>,
        default: usize,
        seed: u64,
    ) -> Result<Vec<PartitionedSilo>, DataError> {
        let traits: Vec<Traits> = pool
            .rows
            .iter()
            .map(|row| Traits {
                class: row.class,
                domain: row.domain,
                user: row.user,
                test: row.test,
            })
            .collect();
        let population = RowsToPartition {
            rows: &traits,
            classes: pool.classes.len(),
            domains: &pool.domains,
            users: &pool.users,
        };
        let partition = self.partition.clone().unwrap_or_else(|| {
            if !pool.users.is_empty() {
                PartitionConfig::Users { rows: 5 }
            } else if pool.domains.len() > 1 {
                let silos = self.from.defaults().silos;
                PartitionConfig::Domains { silos }
            } else {
                PartitionConfig::Iid
            }
        });
        let fixed = partition.fixed(&population);
        if let (Some(has), Some(asked)) = (fixed, silos)
            && asked > has
            && has > 0
        {
            return Err(DataError::TooManySilos {
                asked,
                source_name: self.from.known().map_or("images", |(name, _)| name),
                has: format!("{has}"),
            });
        }
        let count = fixed.or(silos).unwrap_or(default);
        let wrong = |reason| DataError::Config(format!("images: {reason}"));
        let mut parts = partition.divide(&population, count, seed).map_err(wrong)?;
        if parts.is_empty() {
            return Err(wrong("the partition leaves no silo".into()));
        }
        parts.truncate(silos.unwrap_or(count));
        Ok(parts)
    }

    fn kind(&self, set: &super::pictures::Pictures) -> ValueKind {
        match set.are_bytes() {
            true => ValueKind::Pixels,
            false if self.from == ImagesFrom::OfficeCaltech => ValueKind::Shares,
            false => ValueKind::Plain,
        }
    }

    /// The rows of a silo that are used: those for training, then those for testing.
    fn choose(&self, pool: &PicturePool, part: &PartitionedSilo, seed: u64) -> Vec<PoolRow> {
        let all = part.rows.iter().map(|&at| pool.rows[at as usize]);
        let (test, train): (Vec<PoolRow>, Vec<PoolRow>) = all.partition(|row| row.test);
        let limit = |rows: Vec<PoolRow>, most: Option<usize>, what: &str| match most {
            Some(most) if most < rows.len() => {
                let purpose = format!("{what} of {}", part.name);
                chosen(rows, most, pool.domains.len().max(1), seed, &purpose)
            }
            _ => rows,
        };
        let part_of = |fraction: f64| ((fraction * train.len() as f64).round() as usize).max(1);
        let share = self.fraction.map(part_of);
        let most = self.rows.or(self.from.defaults().rows);
        let most = most.into_iter().chain(share).min();
        let mut rows = limit(train, most, "rows");
        rows.extend(limit(test, self.test_rows, "test rows"));
        rows
    }
}

/// At most `most` of the rows at random, with as many of every domain as its share is.
fn chosen(
    rows: Vec<PoolRow>,
    most: usize,
    domains: usize,
    seed: u64,
    purpose: &str,
) -> Vec<PoolRow> {
    let mut rng = stream(seed, purpose);
    let mut by_domain = vec![Vec::new(); domains];
    let all = rows.len() as f64;
    for row in rows {
        by_domain[row.domain as usize].push(row);
    }
    let shares: Vec<f64> = by_domain
        .iter()
        .map(|rows| rows.len() as f64 / all)
        .collect();
    let mut kept = Vec::with_capacity(most);
    for (mut rows, count) in by_domain.into_iter().zip(counts(&shares, most)) {
        shuffle(&mut rng, &mut rows);
        kept.extend(rows.into_iter().take(count));
    }
    kept.sort_by_key(|row| (row.set, row.row));
    kept
}

/// Makes tables, all with the same columns.
struct TableBuilder<'a> {
    config: &'a ImagesConfig,
    /// Scaling of the values of each set.
    kinds: Vec<ValueKind>,
    size: Option<usize>,
    /// True if all pictures get three channels.
    colour: bool,
    /// The shape of all rows.
    shape: Option<[usize; 3]>,
    columns: Vec<String>,
}

impl TableBuilder<'_> {
    /// Looks at the first picture of each set, and for files at all that are used, for colours.
    fn find_colour(
        &mut self,
        pool: &PicturePool,
        parts: &[PartitionedSilo],
    ) -> Result<(), DataError> {
        if self.config.grey || self.colour {
            return Ok(());
        }
        let mut seen = vec![false; pool.sets.len()];
        for &at in parts.iter().flat_map(|part| &part.rows) {
            let row = pool.rows[at as usize];
            let set = &pool.sets[row.set as usize];
            if set.is_uniform() && std::mem::replace(&mut seen[row.set as usize], true) {
                continue;
            }
            if set.channels(row.row as usize)? == 3 {
                self.colour = true;
                return Ok(());
            }
        }
        Ok(())
    }

    fn table(
        &mut self,
        pool: &PicturePool,
        rows: &[PoolRow],
        tests: bool,
    ) -> Result<Table, DataError> {
        let mut table: Option<Table> = None;
        for row in rows {
            let set = &pool.sets[row.set as usize];
            let picture = self.brought(set.picture(row.row as usize)?);
            let shape = *self.shape.get_or_insert(picture.shape);
            if shape != picture.shape {
                let text =
                    |[channels, height, width]: [usize; 3]| format!("{channels}×{height}×{width}");
                return Err(DataError::File {
                    path: set.path.clone(),
                    reason: format!(
                        "expected pictures of one size ({}, as the first), found {}",
                        text(shape),
                        text(picture.shape)
                    ),
                    hint: ": bring all to one with `size`".into(),
                });
            }
            if self.columns.is_empty() {
                self.columns = names(shape);
            }
            let table = table.get_or_insert_with(|| Table::new(self.columns.clone()));
            let values = scaled(self.kinds[row.set as usize], &picture.values);
            match &pool.masks[row.set as usize] {
                Some(masks) => {
                    let mask = masks.picture(row.row as usize)?;
                    table.push_all(&values, &self.mask(mask));
                }
                None => table.push(&values, f64::from(row.class)),
            }
            if tests {
                table
                    .parts
                    .push(if row.test { Split::Test } else { Split::Train });
            }
            if pool.domains.len() > 1 {
                table.domains.push(row.domain);
            }
        }
        Ok(table.unwrap_or_else(|| Table::new(self.columns.clone())))
    }

    /// 1 where the mask is not 0, in the size that is asked for.
    fn mask(&self, mut mask: Picture) -> Vec<f64> {
        let inside = |value: &mut f32| *value = f32::from(u8::from(*value != 0.0));
        mask.values.iter_mut().for_each(inside);
        let mask = match self.size {
            Some(size) => mask.resized(size, size),
            None => mask,
        };
        let inside = |value: f32| f64::from(u8::from(value >= 0.5));
        mask.values.into_iter().map(inside).collect()
    }

    /// The picture in the channels and the size that are asked for.
    fn brought(&self, picture: Picture) -> Picture {
        let picture = match (self.config.grey, self.colour) {
            (true, _) => picture.grey(),
            (false, true) => picture.colour(),
            (false, false) => picture,
        };
        match self.size {
            Some(size) => picture.resized(size, size),
            None => picture,
        }
    }
}

fn scaled(kind: ValueKind, values: &[f32]) -> Vec<f64> {
    let numbers = values.iter().map(|&value| f64::from(value));
    match kind {
        ValueKind::Pixels => numbers.map(|value| value / 127.5 - 1.0).collect(),
        ValueKind::Plain => numbers.collect(),
        ValueKind::Shares => {
            let sum: f64 = numbers.clone().sum();
            numbers
                .map(|value| if sum > 0.0 { value / sum } else { 0.0 })
                .collect()
        }
    }
}

/// Names of the columns of rows of this shape.
fn names([channels, height, width]: [usize; 3]) -> Vec<String> {
    if (channels, height) == (1, 1) {
        return (1..=width).map(|at| format!("feature {at}")).collect();
    }
    let colour = |channel| match channels {
        1 => "",
        _ => ["red ", "green ", "blue "][channel],
    };
    let each = (0..channels).flat_map(|channel| {
        (1..=height).flat_map(move |y| (1..=width).map(move |x| (channel, y, x)))
    });
    each.map(|(channel, y, x)| format!("{}y{y} x{x}", colour(channel)))
        .collect()
}
