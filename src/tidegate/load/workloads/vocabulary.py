"""Plain English words of which prompts are made.

Each is one token behind a space, in the tokenizers of GPT-2's kind with 49 152 entries and more: measured with that of
SmolLM2, 3 000 words drawn from them are 3 000 tokens. A chat template adds its own (SmolLM2's: about 30). Where it
matters, engines count: reports use their ``usage``.
"""

from __future__ import annotations

_WORDS = """
able about across add again ago air allow alone along always amount animal answer appear area around art ask author
baby ball bar basic bear beautiful become bed begin behind below better beyond bill black board boat book bottom boy
bread bridge bring brother build building business but call camera capital car care carry cat cause center century
chair change charge cheap check child choice circle claim clean climb close club coal coat collect come company
complete concern consider continue control cool corn correct could country course cover crop cross culture current
cut dance dark daughter deal decide deep deliver describe design detail device difference difficult dinner direction
distance do dog double down dream drink drive dry duty ear earth easy edge effect eight either element employ end
engine enough entire escape evening event every example exchange exercise experience express eye fact factor fail
fall famous farm father fear feel few field fill final fine finish first fit flat flight flow fly food for foreign
form four fresh friend front full future garden gather gentle gift give glad go gold good grand great ground grow
guide hair hall happen hard have head hear heat height help here hill his hit hole hope hospital hotel hour how
human hurry idea image in include increase industry instead into island it job joy jump just key king know lake
language last laugh lay lead least left legal letter library life light line list little local look loss lot love
lunch main major man many mark mass match matter meal measure meat meet memory message method might milk mind mine
miss modern money moon morning mother mountain move movie music name nature necessary need new next nine no none
north note notice number ocean off office often old once only operate opposite orange original our out over page
paint paper park particular pass past patient pay people perhaps person photo pick piece place plan planet play
point policy population position post pound practice present press price private problem produce program project
prove public purpose put question quiet race rail rain range rather read real receive red relation repeat reply
represent research result rich right rise road rock roll root rose row run said salt sand save scale science sea
season second section seed sell send sentence serve set seven shade shape sharp ship shoe short shoulder side sign
similar since single site six skill sky slow smell snow social soil solution some song sort source space special
speed spend spoke spread square stage star state stay step still stock stop story strange street strong study
success sugar suggest summer supply sure surprise symbol table take tall task teacher tell term than that theory
thick thing think this though thousand through thus time title today together too top touch town trade travel trip
trouble true try turn two under until us usual valley vary view visit vote walk want wash water wave we weather
weight west wheel where while who whole why wife will wind winter wish woman wonder wood work worry write yard
yellow yet young
"""
VOCABULARY = tuple(_WORDS.split())
"""512, so that a word carries nine bits."""
