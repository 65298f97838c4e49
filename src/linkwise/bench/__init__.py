"""Speed and agreement beside other libraries: peers, timing, contests."""
