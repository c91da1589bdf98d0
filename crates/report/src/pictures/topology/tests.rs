#![allow(clippy::unwrap_used)]
use super::super::tests::{assert_inside, numbers_of};
use super::*;
use crate::fixture;
use crate::story::Story;
use serde_json::json;

/// A story whose members form a ring in rounds 2 and 3, and a ring with chords from round 4 on.
fn story(silos: usize, outside: usize) -> Story {
    let mut summary = fixture::summary(silos + outside, 1, 5);
    for (at, silo) in summary.silos.iter_mut().enumerate() {
        silo.outside = at >= silos;
        silo.group = Some(["West", "South", "Midwest"][at % 3].into());
    }
    let ring: Vec<_> = (1..silos).map(|at| json!([at - 1, at])).collect();
    let chords: Vec<_> = (3..silos).map(|at| json!([at - 3, at])).collect();
    let prior: Vec<f64> = (0..silos).map(|_| 1.0 / silos as f64).collect();
    for round in &mut summary.rounds {
        if round.round == 1 {
            continue;
        }
        let mut edges = ring.clone();
        if round.round > 3 {
            edges.extend(chords.clone());
            edges.drain(..edges.len().min(1));
        }
        let graph = json!({ "nodes": silos, "edges": edges });
        round.memory.insert("tfl.graph".into(), graph);
        round.memory.insert("tfl.prior".into(), json!(prior));
    }
    Story::of(&summary, "")
}

#[test]
fn the_first_and_last_graph_are_drawn_with_what_came_and_went() {
    let page = section(&story(6, 2)).into_string();
    assert!(page.contains(
        "First learned after round 2, with 5 of 15 pairs joined; last changed after round 4, with 7 of 15 pairs \
         joined. Between the two, 3 edges were added and 1 removed."
    ), "{page}");
    assert_eq!(page.matches("<svg role").count(), 2);
    // Each member in both, and each silo outside.
    assert_eq!(page.matches("<circle class=\"node\" cx").count(), 12 + 3);
    assert_eq!(page.matches("<circle class=\"hollow\"").count(), 4);
    assert!(page.contains("Hospital 01 (West): 1 neighbour, 16.67 % of the prior"));
    for region in ["West", "South", "Midwest"] {
        assert!(page.contains(&format!("</svg>{region}</li>")), "{page}");
    }
}

#[test]
fn everything_is_inside_and_no_name_is_on_another() {
    for (silos, outside) in [(1, 0), (2, 1), (6, 2), (20, 14), (139, 0), (125, 14)] {
        let page = section(&story(silos, outside)).into_string();
        assert_inside(&page);
        assert_eq!(page, section(&story(silos, outside)).into_string());
        assert_eq!(page.contains("class=\"name halo\""), silos <= NAMED);
    }
    let page = section(&story(20, 0)).into_string();
    let names = page.split("<text class=\"name halo\"").skip(1);
    let names: Vec<(f64, f64, f64)> = names
        .take(20)
        .map(|text| {
            let place = |attribute| numbers_of(text, attribute)[0];
            let label = text.split('>').nth(1).unwrap().split('<').next().unwrap();
            (
                place("x"),
                place("y"),
                LETTER * label.chars().count() as f64,
            )
        })
        .collect();
    for (at, a) in names.iter().enumerate() {
        for b in &names[..at] {
            let apart = (a.0 - b.0).abs() >= (a.2 + b.2) / 2.0 || (a.1 - b.1).abs() >= 13.0;
            assert!(apart, "{a:?} and {b:?}");
        }
    }
}

/// A story of a graph that changes after every round: the ring, and in round r a chord from member r.
fn changing(silos: usize, rounds: u64) -> Story {
    let mut summary = fixture::summary(silos, 1, rounds);
    for round in &mut summary.rounds {
        let at = round.round as usize % (silos - 2);
        let mut edges: Vec<_> = (1..silos).map(|at| json!([at - 1, at])).collect();
        edges.push(json!([at, at + 2]));
        let graph = json!({ "nodes": silos, "edges": edges });
        round.memory.insert("tfl.graph".into(), graph);
    }
    Story::of(&summary, "")
}

#[test]
fn every_graph_in_between_is_drawn_beside_the_one_before() {
    let page = section(&changing(8, 5)).into_string();
    assert_inside(&page);
    assert_eq!(page.matches("<svg role").count(), 2 + 3);
    assert!(page.contains("Graphs between these two: 3<"), "{page}");
    for round in 2..=4 {
        let said = format!("After round {round}: 8 edges<span class=\"muted\"> (1 came, 1 went)");
        assert!(page.contains(&said), "{said} in {page}");
    }
    assert!(!page.contains("Drawn are"));
    // One that never changed has nothing between, and one that changed once neither.
    assert!(
        !section(&story(6, 0))
            .into_string()
            .contains("between these")
    );
}

#[test]
fn of_many_graphs_some_are_drawn_and_it_is_stated() {
    let page = section(&changing(8, 40)).into_string();
    assert_eq!(page.matches("<svg role").count(), 2 + 12);
    let said = "Drawn are 12 of the 38; the summary as JSON has all of them.";
    assert!(page.contains(said), "{page}");
    let graphs = learned(&changing(8, 40));
    let drawn = between(&graphs);
    assert_eq!(drawn, [2, 5, 8, 12, 15, 18, 21, 24, 27, 31, 34, 37]);

    // A graph of many edges is drawn a few times only.
    let full: Vec<_> = (0..120)
        .flat_map(|a| (0..a).map(move |b| json!([b, a])))
        .collect();
    let mut story = changing(120, 40);
    for round in &mut story.rounds {
        let edges = &full[..full.len() - round.round as usize];
        let graph = json!({ "nodes": 120, "edges": edges });
        round.memory.insert("tfl.graph".into(), graph);
    }
    assert_eq!(between(&learned(&story)), [20]);
}

#[test]
fn a_graph_of_another_number_of_clusters_is_laid_out_anew() {
    let mut story = changing(6, 3);
    for (round, nodes) in story.rounds.iter_mut().zip([4, 3, 3]) {
        let graph = json!({ "nodes": nodes, "edges": [[0, 1]] });
        round.memory.insert("tfl.graph".into(), graph);
        let of = [json!([0, 1, 2, 3, 3, 3]), json!([0, 1, 2, 2, 2, 2])];
        let clusters = of[usize::from(nodes == 3)].clone();
        round.memory.insert("tfl.clusters".into(), clusters);
    }
    let page = section(&story).into_string();
    assert!(
        page.contains("Learned after round 2 and unchanged since"),
        "{page}"
    );
}

#[test]
fn clusters_are_nodes_with_the_shares_of_their_members() {
    let mut story = story(4, 0);
    for round in &mut story.rounds {
        let graph = json!({ "nodes": 2, "edges": [[0, 1]] });
        round.memory.insert("tfl.graph".into(), graph);
        round
            .memory
            .insert("tfl.clusters".into(), json!([0, 1, 1, 1]));
        round
            .memory
            .insert("tfl.prior".into(), json!([0.25, 0.25, 0.25, 0.25]));
    }
    let page = section(&story).into_string();
    assert!(
        page.contains("Learned after round 1 and unchanged since: 1 of 1 pair is joined."),
        "{page}"
    );
    assert!(
        page.contains(
            "cluster 2 of Hospital 02, Hospital 03, Hospital 04: 1 neighbour, 75.00 % of the prior"
        ),
        "{page}"
    );
}

#[test]
fn a_graph_that_does_not_fit_the_members_is_not_drawn() {
    let mut story = story(4, 0);
    for (round, graph) in story.rounds.iter_mut().zip([
        json!({ "nodes": 3, "edges": [] }),
        json!({ "nodes": 4, "edges": [[0, 4]] }),
        json!({ "nodes": 4, "edges": [[0]] }),
        json!([1.0]),
        json!(null),
    ]) {
        round.memory.insert("tfl.graph".into(), graph);
    }
    assert_eq!(section(&story).into_string(), "");
}
