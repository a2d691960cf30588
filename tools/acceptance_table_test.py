#!/usr/bin/env python3
"""acceptance_table.py: what was measured is what the page says, and the rest of the page stays."""

import copy
import unittest

import acceptance_table

TEXT = {"file": "eval/prompts/one.txt", "prompt_tokens": 3000, "kv_full_bytes": 100,
        "results": [{"compressor": "snapkv:keep=0.5,window=64,kernel=5,budget=uniform+kivi:bits=4",
                     "draft_len": 4, "accepted": 3.0, "agreement": 0.9, "kl": 0.01, "kept": 0.16,
                     "kv_bytes": 16, "prefill_share": 0.02}]}
REPORT = {"model": "tiny", "version": "1", "date": "2026-12-01", "cpu": "CPU", "isa": "avx2",
          "threads": 2, "weight_bytes": 100, "predict": 8, "texts": [TEXT]}
PAGE = f"before\n{acceptance_table.BEGIN}\nold\n{acceptance_table.END}\nafter\n"


def report_of(file, accepted):
    report = copy.deepcopy(REPORT)
    report["texts"][0]["file"] = file
    report["texts"][0]["results"][0]["accepted"] = accepted
    return report


class AcceptanceTableTest(unittest.TestCase):
    def test_a_table_replaces_what_was_between_the_markers_and_nothing_else(self):
        page = acceptance_table.with_tables(PAGE, [REPORT])
        self.assertTrue(page.startswith("before\n" + acceptance_table.BEGIN))
        self.assertTrue(page.endswith(acceptance_table.END + "\nafter\n"))
        self.assertNotIn("old", page)
        # (4 drafts of 116 + one verify of 200) / 4 tokens / 200 bytes
        self.assertIn("| `snapkv:keep=0.5+kivi:bits=4` | 4 | 3.0 | 0.900 | 0.010 | 0.16 | 0.83 |",
                      page)
        self.assertEqual(acceptance_table.with_tables(page, [REPORT]), page)

    def test_texts_of_one_run_become_columns_and_other_runs_tables_of_their_own(self):
        one, two = report_of("a/one.txt", 3.0), report_of("a/two.txt", 1.0)
        other = {**report_of("a/one.txt", 2.0), "model": "large"}
        page = acceptance_table.with_tables(PAGE, [one, two, other])
        self.assertIn("| 4 | 3.0 | 1.0 |", page)
        self.assertEqual(page.count("| compressor |"), 2)

    def test_what_one_text_lacks_stays_blank_and_what_comes_twice_counts_once(self):
        one, two = report_of("a/one.txt", 3.0), report_of("a/two.txt", 1.0)
        two["texts"][0]["results"][0]["compressor"] = "identity"
        again = {**report_of("a/one.txt", 2.0), "version": "2"}
        page = acceptance_table.with_tables(PAGE, [one, two, again])
        self.assertIn("| `identity` | 4 |  | 1.0 |", page)
        self.assertIn("| 4 | 2.0 |  |", page)
        self.assertIn("2026-12-01, version 1; 2026-12-01, version 2;", page)

    def test_a_page_without_markers_is_refused(self):
        with self.assertRaises(SystemExit):
            acceptance_table.with_tables("no markers\n", [REPORT])


if __name__ == "__main__":
    unittest.main()
