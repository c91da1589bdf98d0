//! Shared test fixtures.

/// The order of the group, little-endian: no scalar, but the next number after the largest one.
pub(crate) const ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

/// Bytes from hexadecimal digits.
pub(crate) fn hex(digits: &str) -> Vec<u8> {
    data_encoding::HEXLOWER
        .decode(digits.trim().as_bytes())
        .unwrap()
}

/// One block of ChaCha20 with nonce 0, written after RFC 8439, section 2.3, and nothing else.
pub(crate) fn chacha20(key: &[u8; 32], counter: u32) -> Vec<u32> {
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
    let mut state: Vec<u32> = b"expand 32-byte k".chunks(4).map(word).collect();
    state.extend(key.chunks(4).map(word));
    state.extend([counter, 0, 0, 0]);
    let start = state.clone();
    let mut quarter = |[a, b, c, d]: [usize; 4]| {
        for (x, y, z, bits) in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)] {
            state[x] = state[x].wrapping_add(state[y]);
            state[z] = (state[z] ^ state[x]).rotate_left(bits);
        }
    };
    for _ in 0..10 {
        for column in 0..4 {
            quarter([column, column + 4, column + 8, column + 12]);
        }
        for diagonal in 0..4 {
            let at = |row: usize| row * 4 + (diagonal + row) % 4;
            quarter([0, 1, 2, 3].map(at));
        }
    }
    let sums = state.iter().zip(&start).map(|(a, b)| a.wrapping_add(*b));
    sums.collect()
}

/// `count` words of 32 bits of a stream from word `at` on, word by word.
pub(crate) fn words32(key: &[u8; 32], at: u64, count: usize) -> Vec<u32> {
    let (first, last) = (at / 16, (at + count as u64) / 16);
    let blocks = (first..=last).flat_map(|block| chacha20(key, block as u32));
    blocks.skip((at % 16) as usize).take(count).collect()
}

/// `count` words of 64 bits of a stream from word `at` on, word by word.
pub(crate) fn words64(key: &[u8; 32], at: u64, count: usize) -> Vec<u64> {
    let halves = words32(key, at * 2, count * 2);
    let pairs = halves.chunks(2);
    pairs
        .map(|pair| u64::from(pair[0]) + (u64::from(pair[1]) << 32))
        .collect()
}
