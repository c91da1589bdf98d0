//! Positions in drawings; the same input gives the same positions.

use std::f64::consts::TAU;

/// A point, or a width and a height.
pub(crate) type Pair = (f64, f64);

/// Rounds of [`spread`]; most drawings hardly move after some thirty.
const ROUNDS: usize = 120;

/// Puts boxes in rows from left to right, each row centred. Returns the middle of every box and the
/// total height.
pub(crate) fn shelves(boxes: &[Pair], width: f64) -> (Vec<Pair>, f64) {
    let mut middles = Vec::with_capacity(boxes.len());
    let mut top = 0.0;
    while let Some(&(first, _)) = boxes.get(middles.len()) {
        let rest = &boxes[middles.len()..];
        let (mut end, mut wide) = (1, first);
        while let Some((next, _)) = rest.get(end).filter(|(next, _)| wide + next <= width) {
            wide += next;
            end += 1;
        }
        let row = &rest[..end];
        let tallest = row.iter().map(|(_, high)| *high).fold(0.0, f64::max);
        let gap = (width - wide) / (row.len() + 1) as f64;
        let mut left = gap;
        for (own, _) in row {
            middles.push((left + own / 2.0, top + tallest / 2.0));
            left += own + gap;
        }
        top += tallest;
    }
    (middles, top)
}

/// Places the nodes of a connected graph so that distances on the plane are, as far as they can be,
/// their distances in hops: stress majorisation (Gansner, Koren & North 2004) from a circle. Wider
/// than high.
pub(crate) fn spread(neighbours: &[Vec<usize>]) -> Vec<Pair> {
    let n = neighbours.len();
    let hops: Vec<Vec<f64>> = (0..n).map(|from| hops(neighbours, from)).collect();
    let round = n as f64 / TAU;
    let mut places: Vec<Pair> = (0..n)
        .map(|node| (TAU * node as f64 / n as f64).sin_cos())
        .map(|(sin, cos)| (round * sin, -round * cos))
        .collect();
    let rounds = if n > 1 { ROUNDS } else { 0 };
    for _ in 0..rounds {
        // One after the other: all at once would go back and forth.
        for node in 0..n {
            places[node] = balanced(node, &places, &hops[node]);
        }
    }
    turned(&places)
}

/// The mean of the positions that the other nodes ask for, weighted by 1 / distance².
fn balanced(node: usize, places: &[Pair], hops: &[f64]) -> Pair {
    let (x, y) = places[node];
    let (mut to, mut weights) = ((0.0, 0.0), 0.0);
    for (other, &(ox, oy)) in places
        .iter()
        .enumerate()
        .filter(|(other, _)| *other != node)
    {
        let (dx, dy) = (x - ox, y - oy);
        let apart = dx.hypot(dy).max(1e-9);
        let weight = 1.0 / (hops[other] * hops[other]);
        to.0 += weight * (ox + hops[other] * dx / apart);
        to.1 += weight * (oy + hops[other] * dy / apart);
        weights += weight;
    }
    (to.0 / weights, to.1 / weights)
}

/// Rotated about the middle so that the longest axis is horizontal.
fn turned(places: &[Pair]) -> Vec<Pair> {
    let count = places.len() as f64;
    let sum = places
        .iter()
        .fold((0.0, 0.0), |sum, place| (sum.0 + place.0, sum.1 + place.1));
    let (mx, my) = (sum.0 / count, sum.1 / count);
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (x, y) in places {
        xx += (x - mx) * (x - mx);
        xy += (x - mx) * (y - my);
        yy += (y - my) * (y - my);
    }
    let (sin, cos) = (f64::atan2(2.0 * xy, xx - yy) / 2.0).sin_cos();
    let turn = |&(x, y): &Pair| {
        let (x, y) = (x - mx, y - my);
        (x * cos + y * sin, y * cos - x * sin)
    };
    places.iter().map(turn).collect()
}

/// Distances in hops from one node; infinite where no path leads.
fn hops(neighbours: &[Vec<usize>], from: usize) -> Vec<f64> {
    let mut hops = vec![f64::INFINITY; neighbours.len()];
    hops[from] = 0.0;
    let mut reached = vec![from];
    let mut next = 0;
    while let Some(&node) = reached.get(next) {
        for &other in &neighbours[node] {
            if hops[other].is_infinite() {
                hops[other] = hops[node] + 1.0;
                reached.push(other);
            }
        }
        next += 1;
    }
    hops
}

/// Moves discs apart that overlap or nearly so; `gap` is left between them, as far as a limited
/// effort allows.
pub(crate) fn separate(places: &mut [Pair], radii: &[f64], gap: f64) {
    for _ in 0..ROUNDS {
        let mut moved = false;
        for a in 1..places.len() {
            for b in 0..a {
                let (dx, dy) = (places[a].0 - places[b].0, places[a].1 - places[b].1);
                let apart = dx.hypot(dy);
                let missing = radii[a] + radii[b] + gap - apart;
                if missing > 0.1 {
                    // Two discs on one spot move apart sideways.
                    let (ux, uy) = if apart > 1e-6 {
                        (dx / apart, dy / apart)
                    } else {
                        (1.0, 0.0)
                    };
                    let half = missing / 2.0;
                    places[a] = (places[a].0 + half * ux, places[a].1 + half * uy);
                    places[b] = (places[b].0 - half * ux, places[b].1 - half * uy);
                    moved = true;
                }
            }
        }
        if !moved {
            return;
        }
    }
}

/// A place for each node of a graph, and the size of the drawing: connected parts are laid out by
/// [`spread`] and stand in rows. Nodes have boxes of these sizes about their places; no two boxes
/// overlap, and all are inside.
pub(crate) fn graph(edges: &[(usize, usize)], sizes: &[Pair], width: f64) -> (Vec<Pair>, Pair) {
    let mut neighbours = vec![Vec::new(); sizes.len()];
    for &(a, b) in edges {
        neighbours[a].push(b);
        neighbours[b].push(a);
    }
    let parts = parts(&neighbours);
    let laid: Vec<(Vec<Pair>, Pair)> = parts
        .iter()
        .map(|members| part(members, &neighbours, sizes, width))
        .collect();
    let boxes: Vec<Pair> = laid.iter().map(|(_, size)| *size).collect();
    let width = boxes.iter().map(|(wide, _)| *wide).fold(width, f64::max);
    let (middles, height) = shelves(&boxes, width);
    let mut places = vec![(0.0, 0.0); sizes.len()];
    for ((members, (laid, _)), (x, y)) in parts.iter().zip(laid).zip(middles) {
        for (&node, place) in members.iter().zip(laid) {
            places[node] = (x + place.0, y + place.1);
        }
    }
    (places, (width, height))
}

/// The connected parts of a graph, the largest first.
pub(crate) fn parts(neighbours: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut seen = vec![false; neighbours.len()];
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for start in 0..neighbours.len() {
        let mut part = Vec::new();
        let mut open = vec![start];
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut seen[node], true) {
                part.push(node);
                open.extend(&neighbours[node]);
            }
        }
        if !part.is_empty() {
            part.sort_unstable();
            parts.push(part);
        }
    }
    parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
    parts
}

/// Room around the boxes of a connected part.
const AROUND: f64 = 10.0;

/// Places of a part's nodes about its middle, and the size that it needs.
fn part(
    members: &[usize],
    neighbours: &[Vec<usize>],
    sizes: &[Pair],
    width: f64,
) -> (Vec<Pair>, Pair) {
    let place = |node: &usize| members.binary_search(node).ok();
    let among: Vec<Vec<usize>> = members
        .iter()
        .map(|&node| neighbours[node].iter().filter_map(place).collect())
        .collect();
    let sizes: Vec<Pair> = members.iter().map(|&node| sizes[node]).collect();
    let places = spread(&among);
    // As wide as there is room for, as long as neighbours are no further apart than is good to see.
    let ends = |at: fn(&Pair) -> f64| {
        let each = places.iter().map(at);
        each.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), at| {
            (low.min(at), high.max(at))
        })
    };
    let (left, right) = ends(|place| place.0);
    let widest = sizes.iter().map(|size| size.0).fold(0.0, f64::max);
    let hop = ((width - widest - 2.0 * AROUND) / (right - left).max(1e-9)).clamp(40.0, 140.0);
    let mut places: Vec<Pair> = places.iter().map(|(x, y)| (hop * x, hop * y)).collect();
    while !separated(&mut places, &sizes) {
        places
            .iter_mut()
            .for_each(|place| *place = (1.1 * place.0, 1.1 * place.1));
    }
    let edges = |at: fn(&Pair) -> f64| {
        let each = places.iter().zip(&sizes);
        each.fold(
            (f64::INFINITY, f64::NEG_INFINITY),
            |(low, high), (place, size)| {
                let half = at(size) / 2.0;
                (low.min(at(place) - half), high.max(at(place) + half))
            },
        )
    };
    let ((left, right), (top, bottom)) = (edges(|pair| pair.0), edges(|pair| pair.1));
    let middle = ((left + right) / 2.0, (top + bottom) / 2.0);
    let places = places.iter().map(|(x, y)| (x - middle.0, y - middle.1));
    let size = (right - left + 2.0 * AROUND, bottom - top + 2.0 * AROUND);
    (places.collect(), size)
}

/// Moves boxes apart that overlap, each pair along the shorter way; whether none overlaps any more.
fn separated(places: &mut [Pair], sizes: &[Pair]) -> bool {
    for _ in 0..ROUNDS {
        let mut moved = false;
        for a in 1..places.len() {
            for b in 0..a {
                let (dx, dy) = (places[a].0 - places[b].0, places[a].1 - places[b].1);
                let x = (sizes[a].0 + sizes[b].0) / 2.0 - dx.abs();
                let y = (sizes[a].1 + sizes[b].1) / 2.0 - dy.abs();
                if x <= 1e-6 || y <= 1e-6 {
                    continue;
                }
                moved = true;
                // A little more than is missing, so that rounding leaves nothing.
                let by = |missing: f64, apart: f64| (missing / 2.0 + 0.01).copysign(apart);
                let (x, y) = if x < y {
                    (by(x, dx), 0.0)
                } else {
                    (0.0, by(y, dy))
                };
                places[a] = (places[a].0 + x, places[a].1 + y);
                places[b] = (places[b].0 - x, places[b].1 - y);
            }
        }
        if !moved {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring with chords, and every seventh node alone.
    fn chords(nodes: usize) -> Vec<(usize, usize)> {
        let joined: Vec<usize> = (0..nodes).filter(|node| node % 7 != 3).collect();
        let ring = joined.iter().zip(joined.iter().skip(1));
        let far = joined.iter().zip(joined.iter().skip(5));
        ring.chain(far).map(|(a, b)| (*a, *b)).collect()
    }

    #[test]
    fn no_two_boxes_of_a_graph_overlap_and_all_are_inside() {
        let complete = |n: usize| (0..n).flat_map(|b| (0..b).map(move |a| (a, b))).collect();
        for nodes in [1, 2, 6, 20, 139] {
            let graphs: [Vec<(usize, usize)>; 3] = [Vec::new(), chords(nodes), complete(nodes)];
            for edges in graphs {
                let sizes: Vec<Pair> = (0..nodes)
                    .map(|node| (20.0 + 9.0 * (node % 8) as f64, 24.0 + (node % 3) as f64))
                    .collect();
                let (places, (width, height)) = graph(&edges, &sizes, 560.0);
                assert_eq!(graph(&edges, &sizes, 560.0).0, places);
                for a in 0..nodes {
                    let ((x, y), (w, h)) = (places[a], sizes[a]);
                    let inside = x >= w / 2.0 && x + w / 2.0 <= width;
                    assert!(
                        inside && y >= h / 2.0 && y + h / 2.0 <= height,
                        "{nodes}: {a}"
                    );
                    for b in 0..a {
                        let (dx, dy) = ((x - places[b].0).abs(), (y - places[b].1).abs());
                        let (w, h) = ((w + sizes[b].0) / 2.0, (h + sizes[b].1) / 2.0);
                        assert!(dx >= w - 1e-6 || dy >= h - 1e-6, "{nodes}: {a} on {b}");
                    }
                }
            }
        }
    }

    fn apart(a: Pair, b: Pair) -> f64 {
        (a.0 - b.0).hypot(a.1 - b.1)
    }

    #[test]
    fn shelves_fill_their_rows_and_stand_below_each_other() {
        let (middles, height) = shelves(&[(40.0, 10.0), (40.0, 30.0), (40.0, 20.0)], 100.0);
        assert_eq!(height, 50.0);
        assert_eq!(middles[0].1, 15.0);
        assert_eq!(middles[1].1, 15.0);
        assert_eq!(middles[2], (50.0, 40.0));
        assert!(middles[1].0 - middles[0].0 >= 40.0);
        // One that is too wide for any row has a row of its own.
        assert_eq!(shelves(&[(300.0, 10.0), (10.0, 10.0)], 100.0).1, 20.0);
        assert_eq!(shelves(&[], 100.0), (Vec::new(), 0.0));
    }

    #[test]
    fn a_path_becomes_a_horizontal_line() {
        let path: Vec<Vec<usize>> = (0..6usize)
            .map(|k| (0..6).filter(|l| k.abs_diff(*l) == 1).collect())
            .collect();
        let places = spread(&path);
        for pair in places.windows(2) {
            assert!((apart(pair[0], pair[1]) - 1.0).abs() < 0.05, "{places:?}");
        }
        assert!(apart(places[0], places[5]) > 4.8, "{places:?}");
        assert!(places.iter().all(|(_, y)| y.abs() < 0.7), "{places:?}");
        assert_eq!(places, spread(&path));
    }

    #[test]
    fn one_node_and_two_nodes_are_placed() {
        assert_eq!(spread(&[vec![]]), [(0.0, 0.0)]);
        let pair = spread(&[vec![1], vec![0]]);
        assert!((apart(pair[0], pair[1]) - 1.0).abs() < 1e-9, "{pair:?}");
    }

    #[test]
    fn discs_on_one_spot_are_moved_apart() {
        let mut places = vec![(0.0, 0.0); 5];
        separate(&mut places, &[10.0; 5], 4.0);
        for a in 0..5 {
            for b in 0..a {
                assert!(apart(places[a], places[b]) > 23.5, "{places:?}");
            }
        }
    }
}
