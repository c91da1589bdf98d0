//! The classifiers over the rows of a network.

use super::*;

#[test]
fn the_head_is_known_and_can_be_exchanged() {
    let config = NetworkConfig {
        width: 0.1,
        image: Some([1, 16, 16]),
        ..named(Architecture::Unet)
    };
    let network = network(&config, LastLayer::Pixels(256));
    let own = network.tensors();
    let head = network.output_layer().unwrap();
    assert!(own.last().unwrap().name.starts_with(&head), "{head}");
    let values = NetworkConfig::new(LayersConfig::Listed(vec![LayerConfig::Dense(7)]));
    let dense = NetworkModel::new(&values, 256, LastLayer::Dense(2)).unwrap();
    let own = dense.tensors();
    let classifier = dense.classifier(256, 5, &[64]).tensors();
    let body = own.len() - 2;
    assert_eq!(own[..body], classifier[..body]);
    assert_eq!(classifier[body].shape, [5, 7]);
}

#[test]
fn the_classifier_of_images_is_that_of_fedcg() {
    for (width, [first, second]) in [(1.0, [32, 64]), (0.25, [8, 16])] {
        let config = NetworkConfig {
            width,
            ..named(Architecture::LeafCeleba)
        };
        let network = network(&config, LastLayer::Dense(2));
        let tensors = network.classifier(3 * 84 * 84, 4, &[]).tensors();
        let shapes: Vec<_> = tensors.iter().map(|tensor| tensor.shape.clone()).collect();
        let expected = [
            vec![first, 3, 3, 3],
            vec![first],
            vec![second, first, 3, 3],
            vec![second],
            vec![4, second],
            vec![4],
        ];
        assert_eq!(shapes, expected);
    }
}
