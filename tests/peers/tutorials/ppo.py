"""Proximal policy optimization on the pole, with advantages estimated from a critic."""
import random

import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical, Normal


def layer_init(layer, std=np.sqrt(2), bias_const=0.0):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, bias_const)
    return layer


class Agent(nn.Module):
    def __init__(self, observations, actions):
        super().__init__()
        self.critic = nn.Sequential(layer_init(nn.Linear(observations, 16)), nn.Tanh(),
                                    layer_init(nn.Linear(16, 1), std=1.0))
        self.actor = nn.Sequential(layer_init(nn.Linear(observations, 16)), nn.Tanh(),
                                   layer_init(nn.Linear(16, actions), std=0.01))

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        logits = self.actor(x)
        probs = Categorical(logits=logits)
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


env = gym.make("CartPole-v1")
num_steps, gamma, gae_lambda, clip_coef = 32, 0.99, 0.95, 0.2
agent = Agent(4, 2)
optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-3, eps=1e-5)
obs, actions = torch.zeros((num_steps, 4)), torch.zeros(num_steps, dtype=torch.long)
logprobs, rewards, dones, values = (torch.zeros(num_steps) for _ in range(4))
next_obs, next_done = torch.Tensor(env.reset(seed=1)[0]), torch.zeros(())
for update in range(1, 4):
    optimizer.param_groups[0]["lr"] = (1.0 - (update - 1.0) / 3) * 2.5e-3
    for step in range(num_steps):
        obs[step], dones[step] = next_obs, next_done
        with torch.no_grad():
            action, logprob, _, value = agent.get_action_and_value(next_obs.unsqueeze(0))
            values[step] = value.flatten()
        actions[step], logprobs[step] = action, logprob
        observation, reward, terminated, truncated, _ = env.step(int(action.cpu().numpy()[0]))
        rewards[step] = torch.tensor(reward).view(-1)
        done = terminated or truncated
        next_obs, next_done = torch.Tensor(env.reset(seed=update)[0] if done else observation), torch.tensor(float(done))
    with torch.no_grad():
        next_value = agent.get_value(next_obs).reshape(1, -1)
        advantages, lastgaelam = torch.zeros_like(rewards), 0
        for t in reversed(range(num_steps)):
            nextnonterminal = 1.0 - (next_done if t == num_steps - 1 else dones[t + 1])
            nextvalues = next_value if t == num_steps - 1 else values[t + 1]
            delta = rewards[t] + gamma * nextvalues * nextnonterminal - values[t]
            advantages[t] = lastgaelam = delta + gamma * gae_lambda * nextnonterminal * lastgaelam
        returns = advantages + values
    b_inds = np.arange(num_steps)
    for epoch in range(2):
        for start in range(0, num_steps, 16):
            mb = b_inds[start:start + 16]
            _, newlogprob, entropy, newvalue = agent.get_action_and_value(obs[mb], actions[mb])
            ratio = (newlogprob - logprobs[mb]).exp()
            mb_adv = (advantages[mb] - advantages[mb].mean()) / (advantages[mb].std() + 1e-8)
            pg_loss = torch.max(-mb_adv * ratio, -mb_adv * torch.clamp(ratio, 1 - clip_coef, 1 + clip_coef)).mean()
            v_loss = 0.5 * ((newvalue.view(-1) - returns[mb]) ** 2).mean()
            loss = pg_loss - 0.01 * entropy.mean() + v_loss * 0.5
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
    y_pred, y_true = values.cpu().numpy(), returns.cpu().numpy()
    print(update, round(1 - np.var(y_true - y_pred) / np.var(y_true), 3), v_loss.item(), entropy.mean().item())
