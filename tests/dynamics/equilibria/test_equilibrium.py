from __future__ import annotations

import torch

from separatrix.dynamics import AttentionFlow, classify

FLOW = AttentionFlow.from_coupling(torch.eye(2), torch.diag(torch.tensor([2.0, 1.0])))


def test_a_record_is_one_row_of_a_frame_whatever_the_number_of_tokens() -> None:
    together, apart = torch.tensor([[1.0, 0.0]] * 5), torch.tensor([[1.0, 0.0]] * 3 + [[-1.0, 0.0]] * 2)
    for end in classify(FLOW, torch.stack([together, apart])):
        frame = end.to_frame()
        assert len(frame) == 1
        assert frame["label"][0] == end.coarse_label
        assert frame["labels"][0] == end.labels.tolist()
        assert frame["sizes"][0] == list(end.sizes)
