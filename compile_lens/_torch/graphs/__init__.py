"""torch.fx graphs from Dynamo to Inductor: records, links between stages, and changes by each pass."""
