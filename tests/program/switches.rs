//! The program has no switch that breaks a rule of the protocol.

#[test]
fn the_program_knows_no_variable_that_breaks_a_rule() {
    let program = std::fs::read(env!("CARGO_BIN_EXE_rota")).expect("the program can be read");
    let has = |text: &[u8]| program.windows(text.len()).any(|bytes| bytes == text);
    // A variable that it does know, so that the search finds what is there.
    assert!(has(b"ROTA_DATA"));
    assert!(!has(b"ROTA_MUTATION"));
}
