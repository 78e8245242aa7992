"""torch.fx graphs from Dynamo to Inductor: copied, linked to each other, and compared before and after each pass."""
