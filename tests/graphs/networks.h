// SPDX-License-Identifier: MIT
// Generated training steps: networks of any depth, for measurements that no recording could cover.
#pragma once

#include "core/graph/training_graph.h"

namespace hw::bench {

/// What op times follow from. A convolution or matrix product takes its floating point operations
/// over `flops`, its gradient op twice as long; everything else the bytes it reads and writes over
/// `bytesPerSecond`; each op `launch` more. The figures are of the order of the GPU of the paper's
/// experiments (Titan X: 6 TFLOPS and 336 GB/s at the peak), not measured.
struct Device {
    double flops = 4e12;  // per second
    double bytesPerSecond = 240e9;
    double launch = 5e-6;  // seconds
};

/// A residual network in the manner of Chen et al. 2016, section 5.2 (Figure 5): pre-activation
/// bottleneck blocks (batch norm, ReLU, convolution, three times; then the sum with the shortcut)
/// on images of `image` x `image` x 3, float32. `layers` counts convolutions and the classifier:
/// 2 + 3 x blocks. The blocks stand in four stages of 56, 28, 14 and 7 pixels a side (at 224) and
/// 256, 512, 1024 and 2048 channels in the proportion 3 : 8 : 36 : 3 of the 152-layer network. At
/// batch 32 a block's feature maps take 411, 206, 103 and 51 MB in the four stages when ReLU is in
/// place. Running statistics of batch norm are left out.
struct ResidualNetwork {
    int layers = 1000;
    int batch = 32;
    int image = 224;
    int classes = 1000;
    bool inPlaceRelu = true;  // as frameworks do it: ReLU writes its input
    Device device;
};
core::TrainingGraph generate(const ResidualNetwork& network);

/// An unrolled LSTM in the manner of section 5.3 (Figure 6): `layers` layers over `steps` steps, a
/// classifier and its loss at every step, float32. A cell is made of two matrix products to the
/// four gates (batch x 4 units), their sum, four views, three sigmoids and a tanh, and five
/// element-wise ops; its feature maps take 21 times batch x units x 4 bytes, 5.5 MB at the
/// defaults. Weights are shared by all steps, their gradients are added up in place.
struct LstmNetwork {
    int steps = 100;
    int layers = 4;
    int batch = 64;
    int units = 1024;
    int inputs = 50;
    int classes = 5000;
    Device device;
};
core::TrainingGraph generate(const LstmNetwork& network);

}  // namespace hw::bench
