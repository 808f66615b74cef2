"""003, §10 made again: what formal privacy costs beside input noise infusion, on a synthetic LODES."""
