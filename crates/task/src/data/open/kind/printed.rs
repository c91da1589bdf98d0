//! Texts that are no CSV: documents, messages, dumps of databases, and what programs print on the screen.

use super::Other;

/// Lines that are looked at.
const LINES: usize = 40;

const SQL: Other = (
    "a dump of a database (SQL)",
    "load it and export the table: in psql \\copy TABLE to 'NAME.csv' csv header; or sqlite3 -header -csv FILE.db \
     \"select * from TABLE\" > \"NAME.csv\"",
);
const SCREEN: Other = (
    "what a database prints on the screen",
    "export the table: psql --csv -c \"select * from TABLE\" > \"NAME.csv\"; or mysql --batch -e \"select * from TABLE\" \
     > \"NAME.tsv\"",
);
const PRINTED: Other = (
    "a table as R or pandas prints it",
    "write it: in R write.csv(x, \"NAME.csv\", row.names = FALSE), in Python x.to_csv(\"NAME.csv\", index=False)",
);
const FHIR: Other = (
    "FHIR resources",
    "make a table of them, a row for each resource: python3 -c \"import json, pandas; x = json.load(open('FILE')); \
     pandas.json_normalize([e['resource'] for e in x.get('entry', [{'resource': x}])]).to_csv('NAME.csv', index=False)\"",
);
const FHIR_LINES: Other = (
    "FHIR resources, one in each line",
    "make a table of them: python3 -c \"import json, pandas; pandas.json_normalize([json.loads(l) for l in open('FILE')])\
     .to_csv('NAME.csv', index=False)\"",
);
const FHIR_XML: Other = (
    "FHIR resources in XML",
    "export them as JSON, and make a table of that with pandas.json_normalize, a row for each resource",
);
const HL7: Other = (
    "messages of HL7",
    "make a table of their observations: tr '\\r' '\\n' < \"FILE\" | grep '^OBX' | cut -d'|' -f4,6,7 | tr '|' ';' > \
     \"NAME.csv\"",
);
const JSON_LINES: Other = (
    "JSON, one object in each line",
    "write the table as CSV: python3 -c \"import pandas; pandas.read_json('FILE', lines=True).to_csv('NAME.csv', \
     index=False)\"",
);
const JSON: Other = (
    "JSON",
    "write the table as CSV: python3 -c \"import pandas; pandas.read_json('FILE').to_csv('NAME.csv', index=False)\"",
);

/// Returns what a text is, if its first letters say that it is no table.
pub(super) fn document(text: &str) -> Option<Other> {
    let start: String = text.chars().take(2000).collect();
    let lower = start.to_ascii_lowercase();
    let begins = |with: &[&str]| with.iter().any(|with| lower.starts_with(with));
    if begins(&["msh|", "fhs|", "bhs|"]) {
        return Some(HL7);
    }
    if begins(&["<!doctype html", "<html", "<table"]) {
        return Some((
            "a web page",
            "was a page saved in place of the file? Save the table as CSV",
        ));
    }
    if begins(&[
        "<?xml",
        "<bundle",
        "<patient",
        "<clinicaldocument",
        "<office:document",
    ]) {
        let has = |text: &str| lower.contains(text);
        return Some(if has("http://hl7.org/fhir") {
            FHIR_XML
        } else if has("<clinicaldocument") || has("urn:hl7-org:v3") {
            ("a document of HL7 (CDA)", "export its entries as CSV")
        } else if has("<office:document") || has("urn:schemas-microsoft-com:office:spreadsheet") {
            (
                "a spreadsheet in XML",
                "open it in a spreadsheet program and save it as .xlsx, .ods or CSV",
            )
        } else {
            ("XML", "save the table as CSV")
        });
    }
    let bare: String = start
        .chars()
        .filter(|letter| !letter.is_whitespace())
        .collect();
    if bare.starts_with("{\"") || bare.starts_with("[{") || bare.starts_with("[[") {
        let fhir = start.contains("\"resourceType\"");
        let objects = text
            .lines()
            .take(2)
            .filter(|line| line.starts_with('{') && line.ends_with('}'));
        return Some(match (fhir, objects.count() == 2) {
            (true, true) => FHIR_LINES,
            (true, false) => FHIR,
            (false, true) => JSON_LINES,
            (false, false) => JSON,
        });
    }
    None
}

/// Returns what a text is, if its lines say that a program printed it.
pub(super) fn output(text: &str) -> Option<Other> {
    let lines: Vec<&str> = text.lines().take(LINES).collect();
    if sql(&lines) {
        Some(SQL)
    } else if screen(&lines) {
        Some(SCREEN)
    } else if printed(text, &lines) {
        Some(PRINTED)
    } else {
        None
    }
}

/// Returns whether the first line that is no comment and no setting is a statement that makes or fills a table.
fn sql(lines: &[&str]) -> bool {
    let lower = lines.iter().map(|line| line.trim().to_ascii_lowercase());
    let settings = [
        "--",
        "/*",
        "set ",
        "use ",
        "drop ",
        "lock ",
        "pragma ",
        "begin",
        "\\",
        "select pg_catalog",
        "start ",
    ];
    let setting =
        |line: &String| line.is_empty() || settings.iter().any(|own| line.starts_with(own));
    let mut others = lower.skip_while(setting);
    others.next().is_some_and(|line| {
        let statement = [
            "create ",
            "insert into ",
            "replace into ",
            "alter ",
            "copy ",
        ];
        statement.iter().any(|own| line.starts_with(own))
            && (line.contains('(') || line.contains(" table ") || line.ends_with([';', '(']))
    })
}

/// Returns whether a line below the names, or around them, is drawn: `----+----`, `+----+`, `|---|`, `---- ----`.
fn screen(lines: &[&str]) -> bool {
    let drawn = |line: &&str| {
        let line = line.trim();
        let known = |letter: char| {
            matches!(
                letter,
                '-' | '+' | '|' | ':' | ' ' | '=' | '\u{2500}'..='\u{257F}'
            )
        };
        let dashes = line.matches(['-', '=', '\u{2500}']).count();
        // A line of dashes alone stands below a title.
        let columns = line.contains(['+', '|', ' ', '\u{253C}', '\u{2502}']);
        dashes >= 3 && columns && line.chars().all(known)
    };
    let record = |line: &&str| line.starts_with("-[ RECORD ") || line.starts_with("*****");
    let mut first = lines.iter().filter(|line| !line.trim().is_empty()).take(2);
    first.any(|line| drawn(line) || record(line))
}

/// Returns whether names stand above columns that are set with blanks, behind the numbers of the rows.
fn printed(text: &str, lines: &[&str]) -> bool {
    let begins = [
        "# a tibble",
        "'data.frame'",
        "structure(list(",
        "<class 'pandas",
    ];
    let lower = lines
        .first()
        .map_or(String::new(), |line| line.to_ascii_lowercase());
    if begins.iter().any(|own| lower.starts_with(own)) {
        return true;
    }
    let cells = |line: &str| line.split_whitespace().count();
    let (Some(names), rows) = (lines.first(), lines.get(1..).unwrap_or_default()) else {
        return false;
    };
    let number = |at: usize, line: &str| {
        let first = line.split_whitespace().next().unwrap_or_default();
        let first = first.trim_matches(['[', ']', ',', ':']);
        first
            .parse::<usize>()
            .is_ok_and(|number| number == at || number == at + 1)
    };
    let separated = [',', ';', '\t', '|']
        .iter()
        .any(|mark| names.contains(*mark));
    let rows: Vec<&&str> = rows.iter().filter(|line| !line.trim().is_empty()).collect();
    // The last line that was read may be cut.
    let whole = rows.len().min(LINES - 2).min(text.lines().count() - 1);
    !separated
        && cells(names) > 1
        && rows.len() >= 2
        && rows[..whole]
            .iter()
            .enumerate()
            .all(|(at, line)| number(at, line) && cells(line) > cells(names) && line.contains(' '))
}
