//! The model card for people, as Markdown.

use std::fmt::Write;

use super::card::{Card, Output};
use crate::data::Standardise;
use crate::schema::MissingRule;

/// The card as a page of Markdown. `files` are the names of the model's files beside it.
pub fn markdown(card: &Card, files: &[String]) -> String {
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = write(&mut page, card, files);
    page
}

fn write(page: &mut String, card: &Card, files: &[String]) -> std::fmt::Result {
    origin(page, card, files)?;
    writeln!(page, "\n## How good it is\n")?;
    quality(page, card)?;
    writeln!(page, "\n## What comes out\n")?;
    output(page, card)?;
    writeln!(page, "\n## What goes in\n")?;
    schema(page, card)?;
    writeln!(page, "\n## Scaling\n")?;
    scaling(page, card)?;
    writeln!(page, "\n## Tensors\n\n| tensor | shape |\n|---|---|")?;
    for (name, shape) in &card.tensors {
        writeln!(page, "| `{name}` | {shape:?} |")?;
    }
    Ok(())
}

/// The title, and where the model comes from.
fn origin(page: &mut String, card: &Card, files: &[String]) -> std::fmt::Result {
    let origin = &card.origin;
    writeln!(
        page,
        "# {}\n",
        escaped(&format!("A model of {}", origin.federation))
    )?;
    writeln!(page, "{}.\n", escaped(&origin.about))?;
    if let Some(worth) = card
        .held_out
        .as_ref()
        .and_then(|held_out| held_out.in_words())
    {
        writeln!(page, "{}\n", escaped(&worth))?;
    }
    writeln!(page, "| | |\n|---|---|")?;
    let mut row = |what: &str, is: &str| writeln!(page, "| {what} | {} |", escaped(is));
    row("federation", &origin.federation)?;
    row("its id", &origin.id)?;
    row("members", &origin.members.to_string())?;
    row("strategy", &origin.strategy)?;
    row("round", &format!("{} of {}", origin.round, origin.rounds))?;
    if let Some(coalition) = origin.coalition {
        let made = match coalition.contributions {
            1 => "1 contribution".to_owned(),
            count => format!("{count} contributions"),
        };
        row(
            "coalition",
            &format!("{} of {}, made from {made}", coalition.number, coalition.of),
        )?;
    }
    row("final block", &origin.block)?;
    row("outcome that the members agreed on", &origin.outcome)?;
    row("certificate of a quorum", &origin.certificate)?;
    if let Some(continues) = &origin.continues {
        row("continues", continues)?;
    }
    row("hash of the tensors (BLAKE3)", &card.hash)?;
    row("exported", &card.created)?;
    row("by", &card.program)?;
    row("at", &origin.silo)?;
    if !files.is_empty() {
        row("files", &files.join(", "))?;
    }
    Ok(())
}

fn quality(page: &mut String, card: &Card) -> std::fmt::Result {
    match &card.held_out {
        None => writeln!(
            page,
            "Nobody measured it on held-out rows when it was exported."
        )?,
        Some(held_out) => {
            writeln!(
                page,
                "On {} rows at {} that were not used for training. A constant prediction is the mean, or the \
                 class frequencies, of its training rows:\n\n| metric | value | constant |\n|---|---|---|",
                held_out.rows,
                escaped(&card.origin.silo)
            )?;
            for (name, value) in &held_out.metrics {
                let unit = if name == &held_out.metric && !held_out.unit.is_empty() {
                    format!(" {}", escaped(&held_out.unit))
                } else {
                    String::new()
                };
                let constant = held_out.constant.get(name);
                let constant =
                    constant.map_or_else(|| "unknown".to_owned(), |value| number(*value));
                writeln!(page, "| {name} | {}{unit} | {constant} |", number(*value))?;
            }
        }
    }
    if card.comparison.is_empty() {
        return Ok(());
    }
    writeln!(
        page,
        "\nIn cross-validation on the training rows of {}, where a model has to be better than its \
         own by more than the standard error to be served:\n\n| model | loss | better than its own by \
         |\n|---|---|---|",
        escaped(&card.origin.silo)
    )?;
    for one in &card.comparison {
        let served = if card.served == Some(one.candidate) {
            ", which it serves"
        } else {
            ""
        };
        writeln!(
            page,
            "| {}{served} | {} | {} ± {} |",
            one.candidate.words(),
            number(one.loss),
            number(one.advantage),
            number(one.error)
        )?;
    }
    Ok(())
}

fn output(page: &mut String, card: &Card) -> std::fmt::Result {
    match &card.output {
        Output::Numbers { names, unit, .. } => {
            writeln!(
                page,
                "{}, in {}.",
                escaped(&names.join(", ")),
                escaped(unit)
            )?;
        }
        Output::Classes { name, classes } => writeln!(
            page,
            "For {}, the probability of each of: {}.",
            escaped(name),
            escaped(&classes.join(", "))
        )?,
        Output::Mask { names } => writeln!(
            page,
            "For each of {} pixels the probability that it belongs to the object.",
            names.len()
        )?,
        Output::Survival {
            event,
            time,
            unit,
            at,
        } => survival(page, (event, time), unit, at)?,
    }
    if let Some(threshold) = &card.threshold {
        writeln!(
            page,
            "\nOf the thresholds above which a row counts as one of the second class, {}. The model may have \
             been chosen on the same validation rows, so the rates there are too good by a little.",
            escaped(&threshold.in_words(&card.origin.silo))
        )?;
    }
    Ok(())
}

fn survival(
    page: &mut String,
    (event, time): (&str, &str),
    unit: &str,
    at: &[f64],
) -> std::fmt::Result {
    writeln!(
        page,
        "A risk score for {} by the time in {}: the logarithm of the hazard relative to a row with the score 0. The larger \
         it is, the earlier the event is expected; only differences between scores mean something.",
        escaped(event),
        escaped(time)
    )?;
    if !at.is_empty() {
        let at: Vec<String> = at.iter().map(f64::to_string).collect();
        writeln!(
            page,
            "\nThe probability to be without the event at {} ({}) takes the baseline hazard of an institution, which is \
             computed from its training rows and stays there: `rota model predict` at its node gives it.",
            at.join(", "),
            escaped(unit)
        )?;
    }
    Ok(())
}

fn schema(page: &mut String, card: &Card) -> std::fmt::Result {
    let schema = &card.task.schema;
    writeln!(
        page,
        "| column | values | where it is missing |\n|---|---|---|"
    )?;
    for (name, feature) in schema.columns() {
        let values = feature.kind.to_string();
        let missing = match feature.missing {
            MissingRule::Refuse => "refused",
            MissingRule::Drop => "no prediction",
            MissingRule::Mean => "the mean",
            MissingRule::Median => "the median",
            MissingRule::Indicator => "the mean, and a mark",
            MissingRule::Middle => "the middle of the range",
            MissingRule::MiddleIndicator => "the middle of the range, and a mark",
        };
        writeln!(
            page,
            "| {} | {} | {missing} |",
            escaped(name),
            escaped(&values)
        )?;
    }
    if !schema.only.is_empty() {
        let only: Vec<String> = schema.only.iter().cloned().map(String::from).collect();
        writeln!(
            page,
            "\nFor rows with {} only; others get no prediction.",
            escaped(&only.join(", "))
        )?;
    }
    Ok(())
}

fn scaling(page: &mut String, card: &Card) -> std::fmt::Result {
    writeln!(
        page,
        "{} A row becomes these numbers, in this order. A missing value is replaced by *fill*; then \
         *mean* is subtracted, and the difference is divided by *deviation*. Fills are of the training \
         rows at {}, so they say something about its rows.\n",
        match card.task.standardise {
            Standardise::Federation => "All members share one scale.",
            Standardise::Silo =>
                "Every member scales by its own training rows; this is the scale of the one that exported the model.",
            Standardise::None => "Numbers are not scaled.",
            Standardise::Ranges => "Numbers are scaled by the ranges that the members agreed on.",
        },
        escaped(&card.origin.silo)
    )?;
    writeln!(
        page,
        "| number | fill | mean | deviation |\n|---|---|---|---|"
    )?;
    for column in &card.columns {
        writeln!(
            page,
            "| {} | {} | {} | {} |",
            escaped(&column.name),
            number(column.fill),
            number(column.mean),
            number(column.deviation)
        )?;
    }
    Ok(())
}

/// A number with up to six digits.
fn number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || (1e-4..1e7).contains(&size) {
        let decimals = (5 - size.max(1e-4).log10().floor() as i32).clamp(0, 9);
        let text = format!("{value:.*}", decimals as usize);
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text
        }
    } else {
        format!("{value:.5e}")
    }
}

/// Text in a cell of a table.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\")
        .replace('|', r"\|")
        .replace(['\n', '\r'], " ")
        .replace('<', "&lt;")
}
