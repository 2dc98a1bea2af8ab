"""Probability distributions with the names and arguments of `torch.distributions`.

    policy = Categorical(logits=model(state))
    action = policy.sample()
    loss = -policy.log_prob(action) * reward

Samples come from the default generator; those of `rsample` have a gradient with respect to the parameters.
"""

import mlc.api  # noqa: F401 (it gives the frontend its compiler)
from mlc.distributions.bernoulli import Bernoulli
from mlc.distributions.categorical import Categorical
from mlc.distributions.distribution import Distribution
from mlc.distributions.normal import Normal
from mlc.distributions.uniform import Uniform

__all__ = ["Bernoulli", "Categorical", "Distribution", "Normal", "Uniform"]
