"""Networks of the product as torch modules, which other libraries read."""

import torch


def to_module(network):
    """A torch ``nn.Sequential`` in double precision, in evaluation mode, that gives ``(n, 1)`` logits."""
    kind = {"relu": torch.nn.ReLU, "softplus": torch.nn.Softplus, "silu": torch.nn.SiLU}[network.activation]
    layers = []
    for weight, bias in zip(network.weights, network.biases, strict=True):
        linear = torch.nn.Linear(weight.shape[1], weight.shape[0], dtype=torch.float64)
        linear.load_state_dict({"weight": torch.from_numpy(weight.copy()), "bias": torch.from_numpy(bias.copy())})
        layers += [linear, kind()]
    return torch.nn.Sequential(*layers[:-1]).eval()
