"""Reads a memory snapshot with Python's own unpickler and holds it against what PyTorch's
memory_viz page expects (reference: torch/utils/viz/MemoryViz.js): blocks fill their segments, and
the trace, replayed forwards, ends in exactly the blocks and segments that the file lists.

Prints per rank with events: rank, events, reserved and allocated bytes at the end."""
import pickle
import sys

snapshot = pickle.load(open(sys.argv[1], "rb"))
segments = snapshot["segments"]
for segment in segments:
    at = segment["address"]
    for block in segment["blocks"]:
        assert block["address"] == at, "a gap in a segment"
        at += block["size"]
    assert at == segment["address"] + segment["total_size"], "blocks do not fill their segment"
    states = {b["state"] for b in segment["blocks"]}
    assert states <= {"active_allocated", "active_pending_free", "inactive"}, states
    allocated = sum(b["size"] for b in segment["blocks"] if b["state"] == "active_allocated")
    assert allocated == segment["allocated_size"]

for rank, events in enumerate(snapshot["device_traces"]):
    if not events:
        continue
    live, pending, held, time = {}, {}, {}, 0
    for e in events:
        action, size = e["action"], e["size"]
        assert e["time_us"] >= time, "time goes backwards"
        time = e["time_us"]
        if action == "oom":
            assert e["device_free"] >= 0
            continue
        address = e["addr"]
        if action == "alloc":
            assert address not in live and address not in pending, "a block handed out twice"
            assert e["frames"], "an allocation without frames"
            live[address] = size
        elif action == "free_requested":
            assert live.pop(address) == size
            pending[address] = size
        elif action == "free_completed":
            assert pending.pop(address) == size
        elif action in ("segment_alloc", "segment_map"):
            held[address] = size
        elif action == "segment_free":
            assert held.pop(address) == size
        elif action == "segment_unmap":
            held[address] = held.get(address, 0) - size
        else:
            raise AssertionError(action)
    mine = [s for s in segments if s["device"] == rank]
    blocks = {b["address"]: b for s in mine for b in s["blocks"]}
    assert live == {a: b["requested_size"] for a, b in blocks.items() if b["state"] == "active_allocated"}
    assert pending == {a: b["requested_size"] for a, b in blocks.items() if b["state"] == "active_pending_free"}
    reserved = sum(s["total_size"] for s in mine)
    assert sum(held.values()) == reserved, "segments of the trace are not those of the list"
    print(rank, len(events), reserved, sum(s["allocated_size"] for s in mine))
